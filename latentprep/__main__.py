"""``python -m latentprep`` is ``prep``."""

from latentprep.cli.main import main  # pyright: ignore[reportMissingImports]

if __name__ == "__main__":
    main()
