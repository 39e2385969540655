"""How the documentation is built: sphinx-build -W --keep-going docs docs/_build.

With -t site, as one version of several in a site (tools/site), the pages have a menu of the versions.
"""

import matplotlib as mpl

import tkmeans

mpl.use("Agg")

project = "tkmeans"
author = "The tkmeans developers"
project_copyright = "The tkmeans developers, BSD-3-Clause"
version = release = tkmeans.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are drawn without a network, too
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "reproduction/*.md"]  # these are parts of reproduction.md
templates_path = ["_templates"]

# The names that these pages use are in docs/inventories, for builds without a network.
intersphinx_mapping = {
    name: (address, (None, f"inventories/{name}.inv"))
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "sklearn": "https://scikit-learn.org/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
    }.items()
}
intersphinx_timeout = 5

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # are not copied, nor is what was printed
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["amsmath", "dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_filename_map = {"tkmeans.stability": "tkmeans.stability-function"}  # where a and A are one letter
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings have them in words
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),  # and what is printed
    "min_reported_time": 1e9,  # a page with the same text builds the same
    "write_computation_times": False,
    "remove_config_comments": True,
    "doc_module": ("tkmeans",),
    "backreferences_dir": "gallery/uses",  # the examples that a name occurs in, for its page
    "reference_url": {"tkmeans": None},
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (560, 392),  # sharp on a dense screen, too
}

html_theme = "pydata_sphinx_theme"
html_title = f"tkmeans {release}"
html_static_path = ["_static"]
html_css_files = ["tkmeans.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "which-estimator": [], "mathematics": [], "limits": [], "changelog": []}
html_theme_options = {
    "logo": {"text": "tkmeans"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
if tags.has("site"):  # noqa: F821
    html_theme_options |= {
        "switcher": {"json_url": "../versions.json", "version_match": release},
        "check_switcher": False,
        "show_version_warning_banner": True,
        "navbar_end": ["version-switcher", "theme-switcher"],
    }
