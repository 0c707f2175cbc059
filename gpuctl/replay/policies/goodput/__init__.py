"""Policies of goodput: throughput times statistical efficiency, for training whose batch sizes adapt."""
