"""Tables and the figure of Bi and Kwok (2013), made again: see ``__main__``."""
