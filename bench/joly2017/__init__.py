"""Tables and figures of Joly, Wehenkel and Geurts (2017), made again: see ``__main__``."""
