"""The check of imports between the components of a crate finds what it is for."""

import pytest

from tools.rust_layers import CRATES, violations

TWO = (("lib",), ("roof",), ("left", "right"), ("cellar",))


@pytest.fixture
def crate(tmp_path):
    (tmp_path / "lib.rs").write_text("mod roof;\npub use roof::tiles::{Slate, Clay as Brick};\n")
    for component in ("roof", "left", "right", "cellar"):
        (tmp_path / component).mkdir()
        (tmp_path / component / "mod.rs").write_text(f"//! The {component}.\n")

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return violations(tmp_path, TWO)

    return write


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_imports_of_a_crate_go_downward(source):
    assert violations(source, CRATES[source]) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cellar/coal.rs", "use crate::roof::Tile;\n"),
        ("cellar/coal.rs", "\nfn tile() -> crate::roof::Tile {}\n"),
        ("cellar/coal.rs", "use crate::{cellar::Ash, roof::{Tile, Gutter}};\n"),
        ("cellar/coal.rs", "use crate::Brick;\n"),
        ("cellar/coal.rs", "use super::super::roof::Tile;\n"),
        ("cellar/mod.rs", "use super::roof::Tile;\n"),
    ],
)
def test_an_import_of_a_component_above_is_found(crate, name, text):
    (found,) = crate(name, text)
    assert found.startswith(name)
    assert found.endswith("cellar imports roof, which lies above")


@pytest.mark.parametrize(
    "text",
    [
        "use super::feather::Down;\n",
        "use crate::left::feather::Down;\n",
        "use super::{bone::Bone, feather::{self, Down}};\n",
        "use super::Down;\n",
        "use super::Soft;\n",
        "fn down() -> super::feather::Down {}\n",
    ],
)
def test_a_circle_of_files_in_a_component_is_found(crate, text):
    crate("left/mod.rs", "pub(crate) use feather::{Down, Down as Soft};\nuse wing::Wing;\n")
    assert crate("left/feather.rs", "use super::quill::Quill;\n") == []
    assert crate("left/quill.rs", "use super::wing::Wing;\n") == []
    (found,) = crate("left/wing.rs", text)
    assert found == (
        "left/feather.rs and left/quill.rs and left/wing.rs import each other in a circle"
    )


def test_what_a_folder_declares_is_common_to_its_files(crate):
    crate("left/mod.rs", "use wing::Wing;\npub struct Bird;\n")
    assert crate("left/wing.rs", "use super::Bird;\n") == []


def test_rooms_of_one_layer_do_not_import_each_other(crate):
    assert crate("left/wing.rs", "\nuse crate::right::Wing;\n") == [
        "left/wing.rs:2: left imports right, which shares its layer"
    ]


def test_a_component_in_no_layer_is_found(crate):
    (found,) = crate("attic/mod.rs", "use crate::cellar::Coal;\n")
    assert "'attic' is in no layer" in found
    found = crate("roof/tiles.rs", "use crate::attic::Box;\n")
    assert "roof/tiles.rs:1: roof imports attic, which is in no layer" in found


@pytest.mark.parametrize(
    "text",
    [
        "use crate::cellar::Coal;\nuse super::wing::Feather;\n",
        "// use crate::roof::Tile;\n/// See [`crate::roof`].\nfn fly() {}\n",
        "#[cfg(test)]\nmod tests {\n    use crate::roof::Tile;\n}\n",
    ],
)
def test_imports_downward_comments_and_tests_pass(crate, text):
    assert crate("left/wing.rs", text) == []
