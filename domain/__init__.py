"""What memory is: values, events and rules. Pure: no I/O, no clock, no randomness."""
