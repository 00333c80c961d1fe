"""All parts of the store's contract, for each database that keeps it."""

from __future__ import annotations

from tests.contract.store.changes import ChangesContract
from tests.contract.store.execution_logs import ExecutionLogsContract
from tests.contract.store.families import FamiliesContract
from tests.contract.store.job_credentials import JobCredentialsContract
from tests.contract.store.kept_answers import KeptAnswersContract
from tests.contract.store.loose_trusts import LooseTrustsContract
from tests.contract.store.rows import StoreContract


class WholeStoreContract(
    StoreContract,
    FamiliesContract,
    LooseTrustsContract,
    JobCredentialsContract,
    ChangesContract,
    KeptAnswersContract,
    ExecutionLogsContract,
):
    """See each of them."""
