"""What all tests need of their process."""

import signal

# A job in the background of a shell ignores Ctrl-C, and with it would all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
