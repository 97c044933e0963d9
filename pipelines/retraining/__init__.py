"""Scheduled retraining: a challenger for the champion, judged on the same rows, promoted or declined with reasons."""
