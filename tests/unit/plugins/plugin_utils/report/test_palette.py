"""Colours that mean something can be told apart by everybody, and seen on both backgrounds."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import page, svg
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import CLASSES

# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB.
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
THEMES = ("light", "dark")


def colour(name, theme):
    style = (page.TEMPLATES / "style.css").read_text(encoding="utf-8")
    found = re.search(rf"--{name}: (?:light-dark\((#\w{{6}}), (#\w{{6}})\)|var\(--(\w+)\));", style)
    if found.group(3):
        return colour(found.group(3), theme)
    text = found.group(1 + THEMES.index(theme))
    part = np.array([int(text[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(linear):
    """CIE 1976 L*a*b* of linear RGB: distances of about 2 are just seen."""
    ratio = XYZ @ np.clip(linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    root = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(first, second):
    high, low = sorted((float(XYZ[1] @ first), float(XYZ[1] @ second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(
    ("names", "least"),
    [([f"mode-{i}" for i in range(svg.MODE_COLOURS)], 10.0), ([f"cpu-{name}" for name in CLASSES], 15.0)],
    ids=["modes", "cpu"],
)
def test_colours_can_be_told_apart(theme, vision, names, least):
    seen = {name: lab(VISION[vision] @ colour(name, theme)) for name in names}
    close = [pair for pair in itertools.combinations(names, 2) if np.linalg.norm(seen[pair[0]] - seen[pair[1]]) < least]
    assert close == []


@pytest.mark.parametrize("theme", THEMES)
def test_lines_stand_out_from_the_page(theme):
    surface = colour("surface", theme)
    faint = [i for i in range(svg.MODE_COLOURS) if contrast(colour(f"mode-{i}", theme), surface) < 3.0]
    assert faint == []
