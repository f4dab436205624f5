#!/bin/bash
# `node sshd`: lets the harness in by SSH, as root and by key alone. The keys that are let in stand in
# /run/fencepost/ssh/authorized_keys; the host key is made here, so that no two nodes share one.
set -eu

home=/run/fencepost/ssh
mkdir -p $home /run/sshd
chmod 700 $home
[ -e $home/host_key ] || ssh-keygen -q -t ed25519 -N '' -C "$(hostname)" -f $home/host_key
# A test opens many connections at once, and many sessions over each.
printf '%s\n' "HostKey $home/host_key" "AuthorizedKeysFile $home/authorized_keys" \
  "PidFile $home/sshd.pid" 'AllowUsers root' 'PermitRootLogin prohibit-password' \
  'AuthenticationMethods publickey' 'PasswordAuthentication no' 'KbdInteractiveAuthentication no' \
  'DisableForwarding yes' 'UsePAM no' 'UseDNS no' 'PrintMotd no' 'PrintLastLog no' \
  'MaxSessions 200' 'MaxStartups 200' 'ClientAliveInterval 15' > $home/sshd_config
[ -e $home/sshd.pid ] && kill -0 "$(cat $home/sshd.pid)" 2> /dev/null && exit 0
/usr/sbin/sshd -f $home/sshd_config -E /var/log/fencepost-sshd.log
