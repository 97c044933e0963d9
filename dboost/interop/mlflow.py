"""An MLflow flavour: ``save_model``, ``log_model``, ``load_model``, pyfunc, and ``autolog``.

What MLflow keeps is the folder of ``dboost.save_model``, which runs no code when it is loaded; nothing is pickled.

Covers: estimators and the pipelines that can be saved, under MLflow's conventions; logging of every fit.
Does not cover: runs, registries and servers, which are MLflow's own.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

import dboost
from dboost.errors import UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.fitting import PROCESS
from dboost.estimators.persistence import load_model as _load_folder
from dboost.estimators.persistence import save_model as _save_folder
from dboost.interop.extras import imported

FLAVOR_NAME = "dboost"
EXTRA = "mlflow"
_DATA = "model.dboost"
# What of a round's record is a metric.
_OF_A_ROUND = ("objective", "gap", "lower_bound", "features", "seconds")
# MLflow refuses longer values of parameters.
_LONGEST = 500


def get_default_pip_requirements() -> list[str]:
    """What an environment needs that predicts with the model.

    Examples
    --------
    >>> get_default_pip_requirements()[0].startswith("dboost==")
    True
    """
    return [f"dboost=={dboost.__version__}"]


def get_default_conda_env() -> Any:
    """The same as MLflow's default conda environment."""
    return imported("mlflow.utils.environment", EXTRA)._mlflow_conda_env(
        additional_pip_deps=get_default_pip_requirements()
    )


def save_model(
    model: Any,
    path: Any,
    conda_env: Any = None,
    code_paths: Any = None,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    extra_pip_requirements: Any = None,
    metadata: Any = None,
) -> None:
    """Save a fitted model as an MLflow model, a local folder.

    Parameters
    ----------
    model : estimator of dboost, or Pipeline that ``dboost.save_model`` takes
    path : path
        A folder that is not there yet.
    signature : mlflow.models.ModelSignature or False, optional
        By default that of `input_example`, where there is one. It tells MLflow of ``params={"method": ...}``, which
        would be passed over otherwise; False leaves out all of it.
    conda_env, code_paths, mlflow_model, input_example, pip_requirements, extra_pip_requirements, metadata
        As for the flavours that MLflow brings.

    Raises
    ------
    UsageError
        MLflow is not installed, or the model cannot be saved.

    Examples
    --------
    >>> save_model(model, "fitted")  # doctest: +SKIP
    """
    models, utils = imported("mlflow.models", EXTRA), imported("mlflow.models.utils", EXTRA)
    environment = imported("mlflow.utils.environment", EXTRA)
    model_utils = imported("mlflow.utils.model_utils", EXTRA)
    pyfunc = imported("mlflow.pyfunc", EXTRA)
    environment._validate_env_arguments(conda_env, pip_requirements, extra_pip_requirements)
    path = os.path.abspath(path)
    model_utils._validate_and_prepare_target_save_path(path)
    code = model_utils._validate_and_copy_code_paths(code_paths, path)
    document = models.Model() if mlflow_model is None else mlflow_model
    example = utils._save_example(document, input_example, path)
    if signature is None and example is not None:
        infer = imported("mlflow.models.signature", EXTRA)._infer_signature_from_input_example
        signature = infer(example, PyfuncModel(model))
    if signature is not False:
        document.signature = _with_method(signature)
    if metadata is not None:
        document.metadata = metadata
    _save_folder(model, os.path.join(path, _DATA))
    pyfunc.add_to_model(
        document,
        loader_module=__name__,
        data=_DATA,
        conda_env=environment._CONDA_ENV_FILE_NAME,
        python_env=environment._PYTHON_ENV_FILE_NAME,
        code=code,
    )
    document.add_flavor(FLAVOR_NAME, dboost_version=dboost.__version__, data=_DATA, code=code)
    document.save(os.path.join(path, models.model.MLMODEL_FILE_NAME))
    defaults = get_default_pip_requirements() if pip_requirements is None and conda_env is None else None
    conda, requirements, constraints = (
        environment._process_conda_env(conda_env)
        if conda_env is not None
        else environment._process_pip_requirements(defaults, pip_requirements, extra_pip_requirements)
    )
    files = imported("mlflow.utils.file_utils", EXTRA)
    with open(os.path.join(path, environment._CONDA_ENV_FILE_NAME), "w", encoding="utf-8") as file:
        imported("yaml", EXTRA).safe_dump(conda, stream=file, default_flow_style=False)
    if constraints:
        files.write_to(os.path.join(path, environment._CONSTRAINTS_FILE_NAME), "\n".join(constraints))
    files.write_to(os.path.join(path, environment._REQUIREMENTS_FILE_NAME), "\n".join(requirements))
    environment._PythonEnv.current().to_yaml(os.path.join(path, environment._PYTHON_ENV_FILE_NAME))


def _with_method(signature: Any) -> Any:
    """A signature, or none yet, that has the parameter of ``PyfuncModel.predict``."""
    module, types = imported("mlflow.models.signature", EXTRA), imported("mlflow.types.schema", EXTRA)
    if signature is not None and signature.params is not None:
        return signature
    method = types.ParamSchema([types.ParamSpec("method", types.DataType.string, PyfuncModel.methods[0])])
    if signature is None:
        return module.ModelSignature(params=method)
    return module.ModelSignature(signature.inputs, signature.outputs, method)


def log_model(
    model: Any,
    name: str | None = None,
    *,
    registered_model_name: str | None = None,
    signature: Any = None,
    input_example: Any = None,
    **more: Any,
) -> Any:
    """Save a fitted model into the current run.

    Parameters
    ----------
    model : estimator of dboost, or Pipeline that ``dboost.save_model`` takes
    name : str, optional
        Of the model within the run.
    registered_model_name : str, optional
        Makes a new version of a model of the registry, too.
    signature, input_example
        As for `save_model`.
    **more
        Further arguments of ``mlflow.models.Model.log``, such as ``pip_requirements``, ``tags`` or ``step``.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Examples
    --------
    >>> log_model(model, "champion", registered_model_name="topics")  # doctest: +SKIP
    """
    return imported("mlflow.models", EXTRA).Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=model,
        signature=signature,
        input_example=input_example,
        **more,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """The estimator or pipeline of an MLflow model.

    Parameters
    ----------
    model_uri : str
        A local folder, or any address of a model that MLflow knows (``runs:/...``, ``models:/name@alias``).
    dst_path : str, optional
        Where it is brought to.

    Returns
    -------
    estimator of dboost, or Pipeline

    Raises
    ------
    ModelFormatError
        The folder is damaged.

    Examples
    --------
    >>> load_model("models:/topics@champion")  # doctest: +SKIP
    """
    artifacts = imported("mlflow.tracking.artifact_utils", EXTRA)
    utils = imported("mlflow.utils.model_utils", EXTRA)
    folder = artifacts._download_artifact_from_uri(artifact_uri=model_uri, output_path=dst_path)
    flavor = utils._get_flavor_configuration(model_path=folder, flavor_name=FLAVOR_NAME)
    utils._add_code_from_conf_to_system_path(folder, flavor)
    return _load_folder(os.path.join(folder, flavor["data"]))


class PyfuncModel:
    """What MLflow calls to predict: labels, or with ``params={"method": ...}`` what another method gives.

    Parameters
    ----------
    model : estimator or Pipeline

    Examples
    --------
    >>> import numpy as np
    >>> from dboost import BoostedClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> PyfuncModel(BoostedClassifier(alpha=0.1).fit(X, [0, 0, 1, 1])).predict(X).tolist()
    [0, 0, 1, 1]
    """

    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function")

    def __init__(self, model: Any) -> None:
        self.model = model

    def get_raw_model(self) -> Any:
        """The estimator or pipeline itself."""
        return self.model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """Predict a DataFrame, an array, a CSR matrix, or documents.

        Parameters
        ----------
        data : DataFrame, array, sparse matrix, list or Series of str
            Documents may also be the only column of a DataFrame.
        params : dict, optional
            ``{"method": "predict_proba"}``; "predict" by default.

        Raises
        ------
        UsageError
            There is no such method.
        """
        method = (params or {}).get("method", "predict")
        if method not in self.methods:
            raise UsageError(f"method={method!r}", hint=f"use one of {', '.join(self.methods)}")
        if isinstance(self._first(), dboost.TextFeatures) and self._first().column is None and hasattr(data, "columns"):
            if len(data.columns) != 1:
                raise UsageError(f"{len(data.columns)} columns; expected one, of documents")
            data = data.iloc[:, 0]
        elif isinstance(data, list | dict):
            data = np.asarray(data) if isinstance(data, list) and not isinstance(data[0], str) else data
        return getattr(self.model, method)(data)

    def _first(self) -> Any:
        return self.model.steps[0][1] if hasattr(self.model, "steps") else self.model


def _load_pyfunc(path: str) -> PyfuncModel:
    """What ``mlflow.pyfunc.load_model`` calls, with the folder of the model."""
    return PyfuncModel(_load_folder(path))


def autolog(
    *, log_models: bool = True, log_plots: bool = True, disable: bool = False, silent: bool = False,
    registered_model_name: str | None = None,
) -> None:  # fmt: skip
    """Log every fit of an estimator to MLflow: parameters, rounds, certificate, plots and the model.

    A fit outside a run has a run of its own.

    Parameters
    ----------
    log_models : bool, default True
        Whether the model is logged.
    log_plots : bool, default True
        Whether the gap by round and the sparsity map are drawn, where matplotlib is installed.
    disable : bool, default False
        Turn it off.
    silent : bool, default False
        Whether MLflow says nothing about it.
    registered_model_name : str, optional
        Each model becomes a version of this model of the registry.

    Raises
    ------
    UsageError
        MLflow is not installed.

    Examples
    --------
    >>> autolog()  # doctest: +SKIP
    """
    utils = imported("mlflow.utils.autologging_utils", EXTRA)

    @utils.autologging_integration(FLAVOR_NAME)  # type: ignore[untyped-decorator]
    def configured(
        log_models: bool = True, log_plots: bool = True, disable: bool = False, silent: bool = False,
        registered_model_name: str | None = None,
    ) -> None:  # fmt: skip
        utils.safe_patch(FLAVOR_NAME, BoostedEstimator, "fit", _logged_fit, manage_run=True)

    configured(
        log_models=log_models, log_plots=log_plots, disable=disable, silent=silent,
        registered_model_name=registered_model_name,
    )  # fmt: skip


def _logged_fit(original: Any, self: Any, *arguments: Any, **more: Any) -> Any:
    """A fit, and what is logged of it; where it is broken off, what there is by then."""
    mlflow, utils = imported("mlflow", EXTRA), imported("mlflow.utils.autologging_utils", EXTRA)
    mlflow.log_params(_parameters(self))
    try:
        result = original(self, *arguments, **more)
    finally:
        if "model_" in self.__dict__:
            _log_rounds(mlflow, self)
    if utils.get_autologging_config(FLAVOR_NAME, "log_plots", True):
        _log_plots(mlflow, self)
    if utils.get_autologging_config(FLAVOR_NAME, "log_models", True):
        log_model(
            self.to_local(),
            "model",
            registered_model_name=utils.get_autologging_config(FLAVOR_NAME, "registered_model_name", None),
        )
    return result


def _parameters(estimator: Any) -> dict[str, str]:
    """The parameters of an estimator as texts; what belongs to a process is none of them, and may hold a password."""
    local = {name: value for name, value in estimator.get_params(deep=False).items() if name not in PROCESS}
    return {"estimator": type(estimator).__name__} | {name: str(value)[:_LONGEST] for name, value in local.items()}


def _log_rounds(mlflow: Any, estimator: Any) -> None:
    """The numbers of every round under its number, and of the end under their own names."""
    entities = imported("mlflow.entities", EXTRA)
    model, now = estimator.model_, int(time.time() * 1000)
    metrics = [
        entities.Metric(name, float(record[name]), now, round_number)
        for round_number, record in enumerate(model.history, 1)
        for name in _OF_A_ROUND
        if isinstance(record.get(name), int | float) and np.isfinite(record[name])
    ]
    cert = model.certificate
    last = {"certified_gap": cert.gap, "final_objective": cert.objective, "rounds": cert.n_iter,
            "features_used": model.n_hypotheses, "passes": cert.passes, "alpha_used": cert.alpha}  # fmt: skip
    metrics += [entities.Metric(name, float(value), now, 0) for name, value in last.items() if np.isfinite(value)]
    client, run = mlflow.MlflowClient(), mlflow.active_run().info.run_id
    for first in range(0, len(metrics), 1000):  # as many as one call of the server takes
        client.log_batch(run, metrics=metrics[first : first + 1000])
    mlflow.set_tags({"stop_reason": cert.stop_reason, "dboost_version": dboost.__version__})
    mlflow.log_text("\n".join(model.hypotheses.words()), "active_features.txt")


def _log_plots(mlflow: Any, estimator: Any) -> None:
    try:
        plots = dboost.plots
        drawn = {"gap": plots.plot_progress(estimator), "sparsity_map": plots.plot_sparsity_map(estimator)}
    except UsageError:  # matplotlib is not installed, or there is nothing to draw
        return
    pyplot = imported("matplotlib.pyplot", "plots")
    for name, axes in drawn.items():
        mlflow.log_figure(axes.figure, f"{name}.png")
        pyplot.close(axes.figure)
