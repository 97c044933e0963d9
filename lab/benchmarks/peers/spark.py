"""Spark MLlib: OWL-QN over partitions, l1, binary and multinomial, on a local master with as many threads as all.

The data is a cached DataFrame of sparse vectors before the clock starts. Standardisation and the intercept are off.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, doubling

MEMORY = "6g"


def prepare(task: Task) -> Any:
    """A cached DataFrame in as many partitions as threads."""
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master(f"local[{task.threads}]")
        .appName("dboost-bench")
        .config("spark.driver.memory", MEMORY)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(task.threads))
        .config("spark.driver.maxResultSize", "0")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    X, n = task.X, task.X.shape[1]
    labels = np.where(task.y > 0, 1.0, 0.0) if task.loss == "log" else task.y.astype(np.float64)

    def row(i: int) -> Any:
        if not hasattr(X, "indptr"):
            return Vectors.dense(X[i])
        part = slice(X.indptr[i], X.indptr[i + 1])
        return Vectors.sparse(n, X.indices[part].tolist(), X.data[part].tolist())

    rows = [(float(labels[i]), row(i)) for i in range(X.shape[0])]
    frame = spark.createDataFrame(rows, ["label", "features"]).repartition(task.threads).cache()
    frame.count()
    return frame


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + regParam |W|_1, at most so many iterations."""
    from pyspark.ml.classification import LogisticRegression

    model = LogisticRegression(
        regParam=task.alpha,
        elasticNetParam=1.0,
        standardization=False,
        fitIntercept=False,
        family="binomial" if task.loss == "log" else "multinomial",
        tol=0.0,
        maxIter=rung["maxIter"],
    ).fit(prepared)
    W = np.asarray(model.coefficientMatrix.toArray(), dtype=np.float64).T
    return Answer(W, np.zeros(W.shape[1]), {"iterations": int(model.summary.totalIterations)})


PEER = Peer(
    name="spark",
    package="pyspark",
    module="pyspark",
    solves=(("log", "l1"), ("multinomial", "l1")),
    layout="a cached DataFrame of sparse vectors, a partition a thread",
    ladder=lambda task: doubling("maxIter", 4, 1 << 13),
    prepare=prepare,
    solve=solve,
    warm=1,
    loads=True,
    note="local master in one JVM",
)
