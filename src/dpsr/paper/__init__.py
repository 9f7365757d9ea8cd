"""The stages of the paper: similar items, blending, low-rank completion. Post-processing: no raw values."""
