"""``python -m latentprep.preprocess.encode.compile_probe``: exit code 0 if torch can compile here.

Run by the parent, which has no torch itself, in a process of its own.
"""


def main() -> None:
    """Compile one line and call it. Raises whatever the compiler raises."""
    import torch

    compiled = torch.compile(lambda x: x.sin() + 1, dynamic=True, fullgraph=True)
    compiled(torch.zeros(3, 5))


if __name__ == "__main__":
    main()
