"""What each parameter of a sweep changes, as a person wants to read it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.simulate.prediction.sweep import effects

if TYPE_CHECKING:
    from lepaute.simulate.prediction.prediction import Prediction
    from lepaute.simulate.prediction.sweep import Effect, Parameter

#: Values of a parameter that are named besides the best; lines are broken between them.
MOST_VALUES = 8
WIDTH = 120
#: From here on "times as long" reads better than per cent.
TIMES = 1.95


def effect_lines(predictions: "Sequence[Prediction]") -> list[str]:
    """A line for each parameter that varies among predictions of one problem; none where nothing does."""
    found = effects(predictions)
    if not found:
        return []
    single = len(predictions[0].run_list) == 1
    what = "one run of each: no intervals" if single else "95 % interval"
    width = max(len(parameter.name) for parameter in found)
    lines = [f"  each parameter, all else equal: the fastest value, and the time of the others ({what})"]
    return lines + [line for parameter in found for line in _lines(parameter, width)]


def _lines(parameter: "Parameter", width: int) -> list[str]:
    """NB  128; 192 is 1.6 % slower (0.4 to 2.8); ..."""
    said = [_said(effect) for effect in parameter.others[:MOST_VALUES]]
    if len(parameter.others) > MOST_VALUES:
        said.append(f"and {len(parameter.others) - MOST_VALUES} more")
    lines = [f"    {parameter.name:<{width}}  {parameter.reference}"]
    for each in said:
        if len(lines[-1]) + len(each) > WIDTH - 2:
            lines[-1] += ";"
            lines.append(" " * (6 + width) + each)
        else:
            lines[-1] += f"; {each}"
    return lines


def _said(effect: "Effect") -> str:
    """One value against the best."""
    if effect.ratio is None:
        return f"{effect.value} not comparable"
    some = [f"faster in {effect.faster_in} of {effect.pairs}"] if effect.faster_in and effect.ratio >= 1.0 else []
    if effect.pairs < effect.all_pairs:
        some.append(f"{effect.all_pairs - effect.pairs} of {effect.all_pairs} pairs not comparable")
    return f"{effect.value} {_change(effect)}" + "".join(f", {each}" for each in some)


def _change(effect: "Effect") -> str:
    """How much longer it takes, with the interval."""
    ratio, low, high = effect.ratio, effect.low, effect.high
    assert ratio is not None
    if low is None or high is None:
        return "takes the same time" if ratio == 1.0 else f"is {_size(ratio)}"
    if low == high == 1.0:
        return "takes the same time"
    if not effect.is_told_apart:
        return f"cannot be told apart ({_percent(low, '+')} to {_percent(high, '+')} %)"
    if ratio >= TIMES:
        return f"takes {_size(ratio)} ({low:.3g} to {high:.3g})"
    near, far = (low, high) if ratio > 1.0 else (2.0 - high, 2.0 - low)
    return f"is {_size(ratio)} ({_percent(near)} to {_percent(far)})"


def _size(ratio: float) -> str:
    if ratio >= TIMES:
        return f"{ratio:.3g} times as long"
    return f"{_percent(1.0 + abs(ratio - 1.0))} % {'slower' if ratio >= 1.0 else 'faster'}"


def _percent(ratio: float, sign: str = "") -> str:
    """Two digits of the change, whole from 100 % on."""
    percent = 100.0 * (ratio - 1.0)
    return f"{percent:{sign}.2g}" if abs(percent) < 99.5 else f"{percent:{sign}.0f}"
