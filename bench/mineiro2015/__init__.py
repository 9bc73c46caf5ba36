"""Tables and figures of Mineiro and Karampatziakis (2015), made again: see ``__main__``."""
