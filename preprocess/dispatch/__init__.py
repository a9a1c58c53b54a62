"""Processes: who sends what to whom, who decides, who is started again.

The protocol, in five sentences.

1. The parent owns one ``inbox`` (a spawn ``Queue`` of depth 2) and one ``lifeline`` pipe to each worker incarnation, and
   one ``outbox`` pipe from it; nothing is shared between workers, since a queue shared by all readers keeps its lock for
   ever when one of them is killed inside ``get()``.
2. Into the inbox go ``Task``s (a chunk id, and which clips to decode one at a time or not at all), and at the end None;
   a byte on the lifeline means *drain*, its end means that the parent is gone and the worker exits at once.
3. Out of the outbox come, for every task, ``Taken`` when the worker begins to read it and ``Committed`` when its block
   and journal line are on disk, or ``HandedBack`` when it gives it up; besides ``Ready`` once, ``Closed`` per shard,
   and ``Failed`` as the last word of a worker that ends with an error. All stay under PIPE_BUF (4,096 bytes): a worker
   stopped in mid message cannot block the parent.
4. What changes often (stage counters, the clips being decoded) is not sent: it lies on the worker's ``Board``, a small
   mapped file that the parent reads whenever it likes, also after the worker's death.
5. What is done is not what a message says but what the journal says: when a worker dies, the parent reads its journal
   before it hands its chunks to another one.

``decide.py`` holds all the rules (who gets what, what a death means) as a pure function over the events and actions of
``moves.py``; ``fleet.py`` only acts, on the processes of ``crew.py``.
"""
