"""moto, S3 server: `If-None-Match: *` is ignored, so every client is granted a lock by it.

Run with moto 5.0.14, boto3 1.44.8, Python 3.11.
Needs: pip install 'moto[server,s3]==5.0.14' boto3. S3_URL is the endpoint of another service, whose
credentials and region boto3 finds as usual; the script makes a bucket there and deletes it.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import uuid

import boto3
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer


class Lock:
    """A lock that is an object: the client that creates it holds the lock."""

    def __init__(self, client, bucket, key):
        self.client, self.place = client, {"Bucket": bucket, "Key": key}

    def acquire(self, owner):
        try:
            self.client.put_object(**self.place, Body=owner, IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] in ("PreconditionFailed", "412"):
                return False
            raise
        return True


def show(client):
    bucket = f"lock-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    lock = Lock(client, bucket, "job")
    try:
        granted = [owner for owner in (b"first", b"second") if lock.acquire(owner)]
        left = client.get_object(**lock.place)["Body"].read()
    finally:
        client.delete_object(**lock.place)
        client.delete_bucket(Bucket=bucket)
    assert granted == [b"first"], (
        f"the server granted {len(granted)} clients, and the object is now that of {left.decode()}"
    )


def main():
    if url := os.environ.get("S3_URL"):
        return show(boto3.client("s3", endpoint_url=url))
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        show(boto3.client("s3", endpoint_url=url, region_name="us-east-1",
                          aws_access_key_id="any", aws_secret_access_key="any"))  # fmt: skip
    finally:
        server.stop()


if __name__ == "__main__":
    main()
