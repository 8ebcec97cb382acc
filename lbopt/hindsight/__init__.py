"""What was possible: a whole run in which every end is known, and the best placement of its requests.

See `lbopt.hindsight.timetable` for the problem and the manual's chapter *Hindsight* for what is proved about it.
"""
