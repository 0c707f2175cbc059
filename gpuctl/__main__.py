"""``python -m gpuctl``."""

from gpuctl.cli.start import main

if __name__ == "__main__":
    main()
