"""Release exercises, grade what comes back, report the grades: for instructors.

``python -m coursework --help`` lists the commands. Nothing here is imported by
genaudit, a chapter or an exercise.
"""
