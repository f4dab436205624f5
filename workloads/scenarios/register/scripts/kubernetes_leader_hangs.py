"""kubernetes, leaderelection: a request that hangs leaves two leaders at work.

Run with kubernetes 37.0.2, Python 3.11.
Needs: pip install kubernetes==37.0.2; no server: the file
has a stand-in for the API server that keeps one Lease and refuses an old resourceVersion.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.kubernetes_leaders import show_leaders

if __name__ == "__main__":
    show_leaders("hang")
