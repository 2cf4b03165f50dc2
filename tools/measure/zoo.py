# SPDX-License-Identifier: MIT
"""The models that can be measured, and the names of their variants.

A variant is MODEL[:pxN|:seqN][:PRECISION][:channels_last]; what is not named
is 224 pixels, fp32 and the contiguous layout. Text models always name their
sequence length.
"""
import dataclasses
import importlib.util
import re

import torch

CLASSES = 1000
PRECISIONS = ("fp32", "tf32", "bf16")

TORCHVISION = (
    "alexnet densenet121 densenet161 densenet169 densenet201 googlenet "
    "mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 mobilenet_v2 "
    "mobilenet_v3_large mobilenet_v3_small resnet101 resnet152 resnet18 "
    "resnet34 resnet50 resnext101_32x8d resnext50_32x4d shufflenet_v2_x0_5 "
    "shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0 "
    "squeezenet1_1 vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 "
    "vgg19_bn wide_resnet101_2 wide_resnet50_2"
).split()
TRANSFORMER_IMAGES = (
    "vit_b_16 vit_b_32 vit_l_16 swin_t swin_s swin_b convnext_tiny "
    "convnext_small convnext_base convnext_large"
).split()
# layers, width, heads
TEXT = {
    "bert-base": (12, 768, 12),
    "bert-large": (24, 1024, 16),
    "gpt2": (12, 768, 12),
    "gpt2-medium": (24, 1024, 16),
    "gpt2-large": (36, 1280, 20),
}


class Unknown(Exception):
    """An unknown name; the message lists the known ones."""


def has(module):
    return importlib.util.find_spec(module) is not None


@dataclasses.dataclass(frozen=True)
class Variant:
    model: str
    pixels: int = 224
    sequence: int = 0  # tokens; 0: a model of images
    precision: str = "fp32"
    channels_last: bool = False

    @property
    def sample(self):
        """The kind of its samples: variants of one kind copy the same bytes."""
        return f"seq{self.sequence}" if self.sequence else f"px{self.pixels}"

    @property
    def sample_bytes(self):
        """One sample with its label or labels."""
        if self.sequence:
            return 2 * 8 * self.sequence
        return 3 * 4 * self.pixels**2 + 8

    def __str__(self):
        words = [self.model]
        if self.sequence or self.pixels != 224:
            words.append(self.sample)
        if self.precision != "fp32":
            words.append(self.precision)
        if self.channels_last:
            words.append("channels_last")
        return ":".join(words)


def parse(name):
    """The variant of a name; Unknown."""
    model, *words = name.split(":")
    check_model(model)
    known = {"sequence": 128} if model in TEXT else {}
    for word in words:
        size = re.fullmatch(r"(px|seq)([1-9]\d{0,5})", word)
        if size:
            key = "pixels" if size[1] == "px" else "sequence"
            known[key] = int(size[2])
        elif word in PRECISIONS:
            known["precision"] = word
        elif word == "channels_last":
            known["channels_last"] = True
        else:
            raise Unknown(f"unknown word '{word}' in the model '{name}'")
    variant = Variant(model, **known)
    if (model in TEXT) != bool(variant.sequence):
        raise Unknown(f"'{name}': a sequence is for models of text")
    return variant


def available():
    """Names of models that can be built here, without those of timm."""
    names = []
    if has("torchvision"):
        import torchvision

        for name in TORCHVISION + TRANSFORMER_IMAGES:
            if hasattr(torchvision.models, name):
                names.append(name)
    if has("transformers"):
        names += TEXT
    return names


def check_model(name):
    if name.startswith("timm/"):
        if not has("timm"):
            raise Unknown(f"'{name}' needs the Python package timm")
        import timm

        if name[5:] not in timm.list_models():
            raise Unknown(f"timm has no model '{name[5:]}'")
    elif name in TEXT and not has("transformers"):
        raise Unknown(f"'{name}' needs the Python package transformers")
    elif name not in available():
        raise Unknown(
            f"unknown model '{name}' (known: {' '.join(available())}, "
            "timm/NAME; groups: torchvision transformer all)"
        )


def expand(words):
    """Model names of a list that may contain groups; Unknown."""
    there = available()
    groups = {
        "torchvision": [m for m in there if m in TORCHVISION],
        "transformer": [m for m in there if m not in TORCHVISION],
        "all": there,
    }
    names = []
    for word in words:
        for name in groups.get(word, [word]):
            check_model(name)
            if name not in names:
                names.append(name)
    return names


def build(variant):
    """The model with random weights, in host memory, in training mode."""
    name = variant.model
    if name in TEXT:
        model = build_text(variant)
    elif name.startswith("timm/"):
        import timm

        model = timm.create_model(name[5:], num_classes=CLASSES)
    else:
        import torchvision

        more = {"num_classes": CLASSES}
        if name.startswith("vit_"):
            more["image_size"] = variant.pixels
        if name == "googlenet":
            more["init_weights"] = False  # not needed, and takes minutes
        model = getattr(torchvision.models, name)(**more)
    if variant.channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model.train()


def build_text(variant):
    import transformers

    layers, width, heads = TEXT[variant.model]
    positions = max(variant.sequence, 512)
    if variant.model.startswith("bert"):
        return transformers.BertForMaskedLM(
            transformers.BertConfig(
                num_hidden_layers=layers,
                hidden_size=width,
                num_attention_heads=heads,
                intermediate_size=4 * width,
                max_position_embeddings=positions,
            )
        )
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_layer=layers,
            n_embd=width,
            n_head=heads,
            n_positions=max(positions, 1024),
            use_cache=False,
        )
    )


def optimizer(variant, model):
    if variant.sequence:
        return torch.optim.AdamW(model.parameters(), lr=1e-5)
    return torch.optim.SGD(
        model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4
    )


def host_batch(variant, n):
    """Inputs and labels of `n` samples in host memory."""
    if variant.sequence:
        tokens = torch.randint(1000, 30000, (n, variant.sequence))
        return tokens, tokens.clone()
    inputs = torch.randn(n, 3, variant.pixels, variant.pixels)
    if variant.channels_last:
        inputs = inputs.to(memory_format=torch.channels_last)
    return inputs, torch.randint(CLASSES, (n,))


def loss(variant, output, labels):
    entropy = torch.nn.functional.cross_entropy
    if variant.sequence:
        return entropy(output.logits.flatten(0, 1), labels.flatten())
    if isinstance(output, tuple):  # googlenet: its auxiliary classifiers
        main, *auxiliary = output
        total = entropy(main, labels)
        return total + 0.3 * sum(entropy(a, labels) for a in auxiliary)
    return entropy(output, labels)
