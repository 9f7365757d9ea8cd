"""List models without privacy, their settings chosen on people held back from training.

popularity   how many people met an item
item_knn     cosine of items, shrunk, the nearest neighbours only
ease         the closed-form item-item model with a zero diagonal
ials         implicit alternating least squares
"""
