"""Methods that the papers compare with and that no kept library offers.

They are for the benchmarks, not for users: no checks, dense inputs, scikit-learn's form.
"""
