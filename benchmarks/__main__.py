"""`python -m benchmarks`: the two speeds of the laboratory, and our share of a training step."""

from __future__ import annotations

import sys

from benchmarks import laboratory, step_share

laboratory.main()
sys.exit(step_share.main())
