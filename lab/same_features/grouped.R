# A grouped multinomial path of glmnet: Rscript grouped.R FOLDER.
# It reads X.bin (m x n float64, by column), y.bin (m int32, classes from 0), lambda.bin and shape.csv (m,n,strengths). It
# writes W.bin: for each strength the intercepts and weights of all classes, (n + 1) x k by column; and seconds.csv.
suppressMessages(library(glmnet))
folder <- commandArgs(trailingOnly = TRUE)[1]
at <- function(name) file.path(folder, name)
shape <- scan(at("shape.csv"), sep = ",", quiet = TRUE)
X <- matrix(readBin(at("X.bin"), "double", shape[1] * shape[2]), shape[1], shape[2])
y <- factor(readBin(at("y.bin"), "integer", shape[1]))
lambda <- readBin(at("lambda.bin"), "double", shape[3])
begun <- proc.time()[["elapsed"]]
fit <- glmnet(X, y, family = "multinomial", type.multinomial = "grouped", lambda = lambda, standardize = FALSE)
seconds <- proc.time()[["elapsed"]] - begun
out <- file(at("W.bin"), "wb")
for (one in seq_along(fit$lambda)) {
  W <- sapply(fit$beta, function(class) class[, one])
  writeBin(as.double(rbind(fit$a0[, one], W)), out)
}
close(out)
write(c(seconds, length(fit$lambda)), at("seconds.csv"), sep = ",")
