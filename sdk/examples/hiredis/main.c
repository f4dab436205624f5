/* A lock on one Redis server by hiredis, Debian's client of Redis for C, on the line protocol
 * (docs/protocol.md), of which it speaks what a test without a guard needs. With the argument
 * no-owner-check its release deletes whatever key is there. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE (1 << 20)
#define TIMEOUT {0, 100000}

static const char *const owned =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
static const char *const blind = "return redis.call('del', KEYS[1])";
static const char *unlock;

static char line[LINE], script[LINE], node[64], secret[128], hold[64];
static long long process, stride, origin_ns;
static int holds, writes;
static struct { char host[64]; int port; redisContext *to; } lock, storage;

/* JSON: the lines are compact objects, and the first occurrence of a name is the one that is meant. */

static const char *after(const char *text, const char *name)
{
    char quoted[96];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *found = strstr(text, quoted);
    if (!found)
        return NULL;
    found += strlen(quoted);
    return found + strspn(found, " ");
}

static long long number(const char *text, const char *name)
{
    const char *at = after(text, name);
    return at ? strtoll(at, NULL, 10) : 0;
}

/* Copies a string without its escapes, which are those of ASCII. */
static void string(const char *at, char *to, size_t size)
{
    size_t length = 0;
    for (at++; *at != '"' && length + 1 < size; at++) {
        char one = *at;
        if (one == '\\')
            one = *++at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
        to[length++] = one;
    }
    to[length] = 0;
}

static void event(const char *type, const char *f, const char *value, const char *error)
{
    static char out[4096];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(out, sizeof out,
        "{\"time\":%lld,\"process\":%lld,\"type\":\"%s\",\"f\":\"%s\",\"value\":{%s},%s%s%s"
        "\"node\":\"%s\"}\n", now.tv_sec * 1000000000LL + now.tv_nsec - origin_ns, process, type, f,
        value, error ? "\"error\":[\"" : "", error ? error : "", error ? "\",\"\"]," : "", node);
    if (write(STDOUT_FILENO, out, length) != length)
        exit(1);
}

/* Connections. */

static void disconnect(void)
{
    if (lock.to) redisFree(lock.to);
    if (storage.to) redisFree(storage.to);
    lock.to = storage.to = NULL;
}

static int connected(redisContext **to, const char *host, int port)
{
    struct timeval timeout = TIMEOUT;
    if (*to)
        return 1;
    *to = redisConnectWithTimeout(host, port, timeout);
    if (*to && !(*to)->err && redisSetTimeout(*to, timeout) == REDIS_OK)
        return 1;
    if (*to) redisFree(*to);
    *to = NULL;
    return 0;
}

/* The request may have been carried out: the process closes, and its successor continues. */
static void unknown(const char *f, const char *value)
{
    event("info", f, value, "timeout");
    event("invoke", "close", "", NULL);
    disconnect();
    event("ok", "close", "", NULL);
    process += stride;
}

/* Ops. */

static void acquire(const char *name, long long ttl_ns)
{
    char value[512], more[768];
    struct timespec now;
    snprintf(value, sizeof value, "\"lock\":\"%s\",\"ttl\":%lld", name, ttl_ns);
    event("invoke", "acquire", value, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long asked = now.tv_sec * 1000000000LL + now.tv_nsec - origin_ns;
    snprintf(secret, sizeof secret, "%s-%d-%lld", node, (int)getpid(), asked);
    if (!connected(&lock.to, lock.host, lock.port)) {
        event("fail", "acquire", value, "unreachable");
        return;
    }
    redisReply *reply =
        redisCommand(lock.to, "SET %s %s NX PX %lld", name, secret, ttl_ns / 1000000);
    if (!reply) {
        unknown("acquire", value);
    } else if (reply->type != REDIS_REPLY_STATUS) {
        event("fail", "acquire", value, "not-granted");
    } else {
        snprintf(hold, sizeof hold, "%lld-%d", process, ++holds);
        snprintf(more, sizeof more, "%s,\"token\":null,\"deadline\":%lld,\"hold\":\"%s\"", value,
                 asked + ttl_ns, hold);
        event("ok", "acquire", more, NULL);
    }
    if (reply) freeReplyObject(reply);
}

static void release(const char *name)
{
    char value[512];
    snprintf(value, sizeof value, "\"lock\":\"%s\",\"hold\":\"%s\"", name, hold);
    event("invoke", "release", value, NULL);
    if (!connected(&lock.to, lock.host, lock.port)) {
        event("fail", "release", value, "unreachable");
        return;
    }
    redisReply *reply = redisCommand(lock.to, "EVAL %s 1 %s %s", unlock, name, secret);
    if (!reply)
        unknown("release", value);
    else if (reply->integer == 1)
        event("ok", "release", value, NULL);
    else
        event("fail", "release", value, "not-held");
    if (reply) freeReplyObject(reply);
}

static void read_resource(const char *resource)
{
    char value[512], more[2048], quoted[512] = "null";
    snprintf(value, sizeof value, "\"resource\":\"%s\",\"hold\":\"%s\"", resource, hold);
    event("invoke", "read", value, NULL);
    redisReply *reply = connected(&storage.to, storage.host, storage.port)
        ? redisCommand(storage.to, "HMGET resource:register value version") : NULL;
    if (!reply) {
        event("fail", "read", value, "timeout");
        disconnect();
        return;
    }
    const char *version = reply->element[1]->str;
    if (reply->element[0]->str)
        snprintf(quoted, sizeof quoted, "\"%s\"", reply->element[0]->str);
    snprintf(more, sizeof more, "%s,\"value\":%s,\"version\":%s", value, quoted,
             version ? version : "0");
    event("ok", "read", more, NULL);
    freeReplyObject(reply);
}

static void write_resource(const char *resource, long long version)
{
    char value[1024], mine[128], more[1536];
    snprintf(mine, sizeof mine, "%s.%lld.%d", node, process, ++writes);
    snprintf(value, sizeof value,
             "\"resource\":\"%s\",\"value\":\"%s\",\"version\":%lld,\"token\":null,\"hold\":\"%s\"",
             resource, mine, version, hold);
    event("invoke", "write", value, NULL);
    redisReply *reply = connected(&storage.to, storage.host, storage.port)
        ? redisCommand(storage.to, "EVAL %s 1 resource:register none %s %lld %s %s", script, mine,
                       version, "", "")
        : NULL;
    if (!reply || reply->elements != 2) {
        unknown("write", value);
    } else if (reply->element[0]->integer == 1) {
        snprintf(more, sizeof more, "%s,\"stored\":%lld", value, reply->element[1]->integer);
        event("ok", "write", more, NULL);
    } else {
        event("fail", "write", value, "refused");
    }
    if (reply) freeReplyObject(reply);
}

/* Orders. */

static void address(const char *name, char *host, int *port)
{
    const char *at = after(after(line, "addresses"), name);
    string(at + 1, host, 64);
    *port = atoi(strchr(at, ',') + 1);
}

/* Takes `setup`, or `reset`, which opens new connections. */
static void begin(int again)
{
    char server[64];
    if (again) {
        event("invoke", "close", "", NULL);
        disconnect();
        event("ok", "close", "", NULL);
    }
    process = number(line, "process");
    stride = number(line, "stride");
    origin_ns = number(line, "origin_ns");
    string(after(line, "node"), node, sizeof node);
    string(after(line, "write_script"), script, sizeof script);
    string(after(line, "servers") + 1, server, sizeof server);
    address(server, lock.host, &lock.port);
    const char *at = after(line, "storage");
    while (*at != '"') /* its address comes first */
        at = after(at, "storage");
    string(at, server, sizeof server);
    address(server, storage.host, &storage.port);
    holds = writes = 0;
    at = after(line, "versions");
    int version = memchr(at, '2', strcspn(at, "]")) ? 2 : 1;
    printf("{\"control\":\"ready\",\"version\":%d,\"pid\":%d,\"generates\":false,"
           "\"extends\":false}\n", version, (int)getpid());
    fflush(stdout);
}

int main(int count, char **words)
{
    char name[256];
    int again = 0;
    unlock = count > 1 && !strcmp(words[1], "no-owner-check") ? blind : owned;
    while (fgets(line, sizeof line, stdin)) {
        const char *f = after(line, "f");
        if (!f) {
            if (after(line, "write_script"))
                begin(again++);
            continue;
        }
        string(after(line, after(line, "lock") ? "lock" : "resource"), name, sizeof name);
        if (!strncmp(f, "\"acquire\"", 9)) acquire(name, number(line, "ttl"));
        else if (!strncmp(f, "\"release\"", 9)) release(name);
        else if (!strncmp(f, "\"read\"", 6)) read_resource(name);
        else if (!strncmp(f, "\"write\"", 7)) write_resource(name, number(line, "version"));
    }
    event("invoke", "close", "", NULL);
    disconnect();
    event("ok", "close", "", NULL);
    return 0;
}
