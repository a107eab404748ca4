"""What is done with files: text, lines, edits, search, differences; on whichever disk they lie.

Every part works on a `hermes.environments.disk.Disk`, so that the same code serves this machine, a
container and a host far away. The tools in `hermes.tools` are thin fronts of what is here.
"""
