"""Explanations of rows: the names that a transform gives, and columns in another order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import dboost
from dboost.errors import UsageError


def test_a_pipeline_is_explained_by_the_names_of_its_transform() -> None:
    rows = pa.table({"colour": ["red", "blue"] * 4})
    model = make_pipeline(dboost.TableFeatures(), dboost.BoostedClassifier(alpha=0.01)).fit(rows, ["a", "b"] * 4)
    found = dboost.explain(model, rows.slice(0, 1))
    assert found.words == ["colour=red"]
    np.testing.assert_allclose(found.scores, model.decision_function(rows.slice(0, 1)), atol=1e-12)


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_a_row_whose_columns_stand_in_another_order_is_refused(kind) -> None:
    columns = {"p": [0.0, 1.0, 2.0, 3.0], "q": [1.0, 0.0, 1.0, 5.0]}
    model = dboost.BoostedClassifier(alpha=0.1).fit(pd.DataFrame(columns), [0, 0, 1, 1])
    row = {"p": [3.0], "q": [5.0]}
    found = dboost.explain(model, kind(row))
    np.testing.assert_allclose(found.scores, model.decision_function(pd.DataFrame(row)), atol=1e-12)
    with pytest.raises(UsageError, match="columns of the row are q, p"):
        dboost.explain(model, kind({"q": [5.0], "p": [3.0]}))
