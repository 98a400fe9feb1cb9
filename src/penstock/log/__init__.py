"""IN: from an append to a segment on disk, and back to order after a crash.

- `directory`: names of files; `metadata`: what a queue says of itself; `locks`: who is here
- `segments`: the segments in order; `spare`: making the next one ahead; `roll`: when it is due
- `attach`: joining the processes that are here; `recover`: opening when nobody was, after a crash
- `appender`: built once, then the kernel appends alone; `keeper`: the thread that works ahead
- `durable`: forcing segments and their names to the disk, in order
- `compact`: dropping what retention lets go; `verify`: reading everything to see that it is whole
"""
