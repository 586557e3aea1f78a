"""Build of the optional C extensions.

They may fail to compile without failing the installation.
"""

from setuptools import Extension, setup

FOLDER = "cupel_measures/native/"

setup(
    ext_modules=[
        Extension(
            "cupel_measures.native._reader",
            sources=[FOLDER + "_reader.c"],
            depends=[FOLDER + name for name in ("_reader.h", "_topic.h", "_text.h", "_index.h")],
            optional=True,
        ),
        Extension("cupel_measures.native._flips", sources=[FOLDER + "_flips.c"], optional=True),
        Extension("cupel_measures.native._rows", sources=[FOLDER + "_rows.c"], optional=True),
        Extension("cupel_measures.native._tables", sources=[FOLDER + "_tables.c"], optional=True),
    ]
)
