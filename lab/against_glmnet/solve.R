# Solve the problem of one folder with glmnet: Rscript solve.R FOLDER.
# It reads X.csv, y.csv and job.csv (name,value), and pf.csv and offset.csv where they are there; it writes W.csv, one
# column for each output, the intercept in its first row. Lambda is that of the mean loss, for factors as they are given.
suppressMessages(library(glmnet))
folder <- commandArgs(trailingOnly = TRUE)[1]
at <- function(name) file.path(folder, name)
table <- function(name) as.matrix(read.csv(at(name), header = FALSE))
job <- read.csv(at("job.csv"), header = FALSE, row.names = 1, colClasses = "character")
given <- function(name) job[name, 1]
X <- table("X.csv")
y <- table("y.csv")
n <- ncol(X)
pf <- rep(1, n)
if (file.exists(at("pf.csv"))) pf <- table("pf.csv")[, 1]
out <- which(is.infinite(pf))
pf[out] <- 1
# glmnet divides the factors by their mean
lambda <- as.numeric(given("alpha")) * mean(pf)
family <- given("family")
y <- if (family == "multinomial") factor(y[, 1]) else if (family == "mgaussian") y else y[, 1]
offset <- if (file.exists(at("offset.csv"))) table("offset.csv") else NULL
if (!is.null(offset) && ncol(offset) == 1) offset <- offset[, 1]
lower <- if (given("positive") == "TRUE") 0 else -Inf
# a path down to lambda: glmnet is slow from nothing
path <- lambda * 10^seq(1.5, 0, length.out = 30)
more <- if (family %in% c("multinomial")) list(type.multinomial = given("type")) else list()
fit <- do.call(glmnet, c(list(
  X, y, family = family, alpha = as.numeric(given("ratio")), lambda = path,
  standardize = given("standardize") == "TRUE", intercept = given("intercept") == "TRUE", thresh = 1e-16, maxit = 1e7,
  penalty.factor = pf, exclude = out, offset = offset, lower.limits = lower, relax = given("relax") == "TRUE"
), more))
last <- length(path)
# the features of the last model, fitted again without a penalty
if (given("relax") == "TRUE") fit <- fit$relaxed
W <- if (is.list(fit$beta)) sapply(fit$beta, function(one) one[, last]) else as.matrix(fit$beta)[, last, drop = FALSE]
b <- if (is.matrix(fit$a0)) fit$a0[, last] else fit$a0[last]
write.table(format(rbind(b, W), digits = 17), at("W.csv"), sep = ",", row.names = FALSE, col.names = FALSE, quote = FALSE)
