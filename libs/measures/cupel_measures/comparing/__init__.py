"""Which differences are real: correlations, tests, intervals and groups over topics x systems of scores.

A score matrix has a row per topic and a column per system. Every function is pure, seeded where it draws,
says what it found by name, and gives no number where there is none: `undefined` then says why.
"""
