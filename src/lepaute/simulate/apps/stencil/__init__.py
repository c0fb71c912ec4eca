"""A 3D halo-exchange stencil with an all-reduction in each iteration."""

from lepaute.simulate.apps.stencil.parameters import Stencil

__all__ = ["Stencil"]
