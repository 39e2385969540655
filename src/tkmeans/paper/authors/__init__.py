"""The authors' released code, as models and stopping rules of our one loop.

The published tables were made with this code, not with the paper's equations. Every class lists where it leaves them.
What all of them share:

* Rows are z-scored and then scaled to [-1, 1] feature by feature (`tkmeans.datasets.scaled`).
* Labels are those of the last E-step; the centres that are returned come one M-step later.
* A NaN in a centre becomes 0, so a cluster that lost all its rows moves to the origin. Q leaves out its NaN terms.
* A run ends when Q has hardly changed in four successive iterations (`methods.QuietFor`), however many rows there are.

Most M-steps look at the rows again, so their statistics are the rows themselves, and merging joins them.
"""
