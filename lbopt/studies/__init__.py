"""Questions that a user asks, made of the rooms below: how far from the optimum is my router?"""
