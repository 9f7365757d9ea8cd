"""The public design: what the mask says, at no cost. Only the training mask, always."""

from dpsr.design.design import Design

__all__ = ["Design"]
