"""Tables and figures of Joly, Geurts and Wehenkel (2014), made again: see ``__main__``."""
