"""Entry point of the command ``pmdc`` and of ``python -m pmdc``."""

import sys


def main() -> None:
    """Run the command line, or say how to get what it needs."""
    try:
        from pmdc.cli import main as run
    except ImportError as error:
        sys.stderr.write(f'pmdc: the command line could not be loaded ({error}): pip install "pmdc[cli]"\n')
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(run())


if __name__ == "__main__":
    main()
