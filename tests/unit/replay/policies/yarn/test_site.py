"""Hadoop's configuration files: properties and amounts, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.yarn.site import MOST_DEPTH, Setting, absolute, amount, conf_files, properties, root_of

if TYPE_CHECKING:
    from pathlib import Path


def test_properties_have_their_value_and_line_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_text(
        "<?xml version='1.0'?>\n<!-- a site -->\n<configuration>\n<property><name> a.b </name>\n"
        "<value> 1 &lt; 2 </value></property>\n<property><name>c</name><value>x</value><final>true</final></property>\n"
        "<property><name>c</name><value>y</value></property>\n</configuration>\n",
        "utf-8",
    )
    found = properties(str(path))
    assert {name: (one.text, one.line) for name, one in found.items()} == {"a.b": ("1 < 2", 5), "c": ("y", 7)}
    assert root_of(str(path)) == "configuration"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<configuration><property>", r"x\.xml:1: is not XML"),
        ("", "is not XML"),
        ("<allocations/>", "outermost element is <allocations>"),
        ("<configuration><property><value>1</value></property></configuration>", "without a <name>"),
        ('<!DOCTYPE c [<!ENTITY a "b">]><configuration>&a;</configuration>', "DOCTYPE"),
        ('<!DOCTYPE c SYSTEM "file:///etc/passwd"><configuration/>', "DOCTYPE"),
        ("<a>" * (MOST_DEPTH + 1), "<a>"),
        ("<configuration>" + "<b>" * (MOST_DEPTH + 1), f"more than {MOST_DEPTH} levels"),
        ("<?xml version='1.0' encoding='nothing'?><configuration/>", "is not XML"),
    ],
)
def test_an_invalid_configuration_file_is_an_error_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.xml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=message) as error:
        properties(str(path))
    assert str(path) in str(error.value)


def test_files_of_a_directory_come_in_the_order_requested(tmp_path: Path) -> None:
    for name in ("yarn-site.xml", "capacity-scheduler.xml", "other.xml"):
        (tmp_path / name).write_text("<configuration/>", "utf-8")
    names = ("yarn-site.xml", "capacity-scheduler.xml")
    assert conf_files(str(tmp_path), names) == [str(tmp_path / name) for name in names]
    assert conf_files(f"{tmp_path / 'other.xml'}:", names) == [str(tmp_path / "other.xml")]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="a directory without any of"):
        conf_files(str(tmp_path / "empty"), names)
    with pytest.raises(UsageError, match="no such file"):
        conf_files(str(tmp_path / "none.xml"), names)


def test_amounts_are_mb_of_memory_or_numbers() -> None:
    assert [amount(text, 0) for text in ("10240", "10Gi", "10g", "1048576Ki")] == [10240, 10240, 1e10 / 2**20, 1024]
    assert [amount(text, 2) for text in ("4", "2k")] == [4, 2000]
    for text in ("", "four", "-1", "1x", "nan", "1e99"):
        with pytest.raises(ValueError, match=r".*"):
            amount(text, 2)


def test_absolute_resources_are_read_by_name() -> None:
    def read(text: str) -> dict[int, float]:
        return absolute(Setting("root.a.capacity", text, "capacity-scheduler.xml", 3))

    assert read("[memory=10Gi, vcores=8,yarn.io/gpu=4,yarn.io/fpga=1]") == {0: 10240, 1: 8, 2: 4}
    for text in ("memory=1", "[memory]", "[memory=x]"):
        with pytest.raises(InputError, match=r"capacity-scheduler\.xml:3: root\.a\.capacity"):
            read(text)
