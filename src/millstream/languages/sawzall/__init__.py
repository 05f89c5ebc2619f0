"""Sawzall: a program for one record, and tables for what all of them emit."""
