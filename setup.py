"""Package metadata of svcd; tool settings live in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_namespace_packages, find_packages, setup

HOME = "https://svcd.example"  # a placeholder: scripts/release says so
README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")

setup(
    name="svcd",
    version="0.3.0",
    description="Provision data-processing clusters on OpenStack and run jobs on them",
    long_description=re.sub(r"\]\((?=docs/|LICENSE)", f"]({HOME}/source/", README),
    long_description_content_type="text/markdown",
    author="The svcd developers",
    author_email="maintainers@svcd.example",
    url=HOME,
    project_urls={
        "Documentation": f"{HOME}/docs/",
        "Source": f"{HOME}/source/",
        "News": f"{HOME}/source/NEWS.md",
    },
    keywords="openstack hadoop spark pig oozie cluster provisioning twisted",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Environment :: No Input/Output (Daemon)",
        "Environment :: OpenStack",
        "Environment :: Web Environment",
        "Framework :: Twisted",
        "Framework :: Pytest",
        "Intended Audience :: Developers",
        "Intended Audience :: System Administrators",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: System :: Clustering",
        "Topic :: System :: Distributed Computing",
        "Typing :: Typed",
    ],
    license="Apache-2.0",  # the SPDX identifier
    license_files=["LICENSE"],
    python_requires=">=3.11",
    # The explicit package_dir keeps editable installs on a plain path entry, which is the only
    # kind of editable install in which twistd finds the plugin file.
    package_dir={"": "."},
    packages=[
        *find_packages(include=["svcd", "svcd.*"]),
        *find_namespace_packages(
            include=[
                "svcd.provisioning.distributions.vanilla.image.*",
                "svcd.store.schema",
                "svcd.workflow.runner",
            ]
        ),
        "twisted.plugins",
    ],
    package_data={
        "svcd": ["py.typed", "console/*"],
        "svcd.store": ["schema/*.sql"],
        "svcd.workflow": ["runner/*"],
        "svcd.provisioning.distributions.vanilla": ["image/**/*", "defaults/*"],
        "twisted": ["plugins/svcd_plugin.py"],
    },
    include_package_data=False,
    install_requires=[
        "Twisted[tls,conch]>=24.11",
        "klein>=24.8",
        "treq>=24.9.1",
        "attrs>=24.2",
        "click>=8.1",
        "requests>=2.32.2",
        "urllib3>=2.1",
        "keystoneauth1>=5.6",
        "msgspec>=0.19",
        "cryptography>=43",
        "prometheus_client>=0.21",
        "PyYAML>=6.0",
        "zope.interface>=6",
    ],
    extras_require={
        "postgresql": ["txpostgres>=1.7", "psycopg2-binary>=2.9.9"],
        "release": ["build>=1.2", "pyroma>=5", "setuptools>=77", "twine>=6", "wheel"],
        "dev": [
            "sphinx>=8.1",
            "furo>=2024.8.6",
            "myst-parser>=4",
            "ruff>=0.8",
            "mypy>=1.13",
            "mypy-zope>=1.0.8",
            "types-PyYAML",
            "import-linter>=2.1",
            "hypothesis>=6.115",
            "schemathesis>=4.0",
            "jsonschema-rs>=0.30",
            "openapi-spec-validator>=0.7",
            "openapi-python-client>=0.24",
            "pytest>=8",
            "httpx>=0.27",  # for FakeService.transport
            "towncrier>=24.8",
            "axe-playwright-python>=0.1.7",  # brings axe-core along
            "playwright>=1.49",  # drives the system's Chromium; its own browser is not needed
        ],
    },
    entry_points={
        "console_scripts": ["svcd = svcd.__main__:main"],
        "pytest11": ["svcd = svcd.testing_pytest"],
    },
    zip_safe=False,
)
