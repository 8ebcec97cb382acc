"""A mixture of experts without weights, which vLLM fills from a fixed seed, and a tokenizer of printable text.

Two engines with the same seed answer alike at temperature 0. Every token is one or two printable characters, so that
each is an event of a stream. The step time of the wide form depends on the tokens that requests hold: it has attention
heads enough that to read their keys and values takes longer than all else.
"""

from __future__ import annotations

import json
from pathlib import Path

#: Tokens of the vocabulary, three of them special.
VOCABULARY = 320
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_CONFIG = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 512,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "mlp_only_layers": [],
    "attention_bias": False,
    "use_sliding_window": False,
    "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "eos_token_id": VOCABULARY - 1,
    "pad_token_id": VOCABULARY - 3,
}


def write_model(folder: Path, **changes: int) -> Path:
    """Write the model into a folder, with other values of its configuration where they are named; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = {name: _CONFIG[name] for name in ("eos_token_id", "pad_token_id")}
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": _SPECIAL[2],
        "pad_token": _SPECIAL[0],
        "model_max_length": _CONFIG["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        "chat_template": _CHAT,
    }
    files = {
        "config.json": {**_CONFIG, **changes},
        "generation_config.json": ends,
        "tokenizer_config.json": about,
        "tokenizer.json": tokenizer(),
    }
    for name, told in files.items():
        (folder / name).write_text(json.dumps(told, indent=1), encoding="utf-8")
    return folder


def tokenizer() -> dict[str, object]:
    """Return a tokenizer in the format of `tokenizers`: byte pairs without bytes, printable characters and pairs."""
    single = [chr(code) for code in range(32, 127)] + ["\n"]
    letters = "etaoinshrdlucmfwypvbgk"
    pairs = [(a, b) for a in letters for b in letters][: VOCABULARY - len(_SPECIAL) - len(single)]
    words = [*single, *(a + b for a, b in pairs)]
    added = [
        {
            "id": len(words) + number,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, text in enumerate(_SPECIAL)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {word: number for number, word in enumerate(words)},
            "merges": [list(pair) for pair in pairs],
        },
    }
