"""What does placing experts exactly gain over greedy, and what does a placement of one's own gain over one for all?"""

from lbopt.studies.placement.study import PlacedLayer, PlacementConfig, PlacementOutcome, run_placement

__all__ = ["PlacedLayer", "PlacementConfig", "PlacementOutcome", "run_placement"]
