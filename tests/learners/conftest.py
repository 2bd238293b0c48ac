"""Learners are asked here without the workers that give each of them one thread of the linear algebra."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield
