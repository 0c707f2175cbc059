"""Accounting logs of PBS Pro, OpenPBS and Torque: attributes of records, and jobs made of several records."""
