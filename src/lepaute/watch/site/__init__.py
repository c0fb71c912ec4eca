"""The pages of a watch: a folder of HTML that needs neither server nor network."""
