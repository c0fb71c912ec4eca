"""Provenance of the node: what is kept, and what is never kept."""

import json

from lepaute.measure.environment import collect_environment, cpuinfo_field, redact


def test_values_of_variables_that_cannot_matter_are_not_kept() -> None:
    kept = redact({"OPENBLAS_NUM_THREADS": "1", "HOME": "/home/someone", "EDITOR": "vi"})
    assert kept == {"values": {"OPENBLAS_NUM_THREADS": "1"}, "other_names": ["EDITOR", "HOME"]}


def test_secret_looking_names_and_passwords_in_addresses_are_redacted_even_where_the_variable_matters() -> None:
    kept = redact({"SLURM_JWT": "abc", "OMPI_MCA_proxy": "http://user:hunter2@host:80/", "LEPAUTE_TOKEN": "t"})
    assert kept["values"] == {
        "SLURM_JWT": "(redacted)",
        "OMPI_MCA_proxy": "http://(redacted)@host:80/",
        "LEPAUTE_TOKEN": "(redacted)",
    }


def test_no_member_of_the_environment_holds_a_secret_of_this_process() -> None:
    members = collect_environment({"API_KEY": "s3cr3t-value", "OMPI_MCA_btl": "self"})
    assert not any(b"s3cr3t-value" in content for content in members.values())
    assert json.loads(members["variables.json"])["other_names"] == ["API_KEY"]
    assert {"cpuinfo.txt", "meminfo.txt", "uname.txt", "loadavg.txt"} <= set(members)


def test_fields_of_cpuinfo_are_those_of_the_first_processor() -> None:
    text = "processor\t: 0\nmodel name\t: Fast One\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nmodel name\t: Other\n"
    assert cpuinfo_field("model name", text) == "Fast One"
    assert cpuinfo_field("flags", text) == "fpu avx2"
    assert cpuinfo_field("governor", text) is None
