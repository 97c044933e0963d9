"""The options that users of R's glmnet bring, each solved by both."""
