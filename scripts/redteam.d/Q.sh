# Q: inner repositories in absurd states, beyond what A has of them.
# shellcheck shell=bash disable=SC2016,SC2154

# in_turn has the agent do each of some things to a prepared commit, and wants each to be held and to be mended.
in_turn() {
	local harm
	for harm; do
		attack "prepared; $harm; published"
		if [ -n "$proving" ]; then return; fi
		held 'inner-invalid|inner-main'
		mends
		brief=1
		[ -z "$surprise" ] || { seen "($harm)" && return; }
	done
}

# broken_git is what --prove wants: that plain git in the workspace fails or hangs.
broken_git() { plainly 'timeout 3 git -C $plain fsck && timeout 3 git -C $plain log -1 -p' '[ "$status" != 0 ]'; }

Q1() {
	tries '.git is a FIFO, a socket, an empty file, an empty folder, a folder without permissions'
	attack 'mv .git $scratch/moved-$$; mkfifo .git'
	plainly 'timeout 3 git -C $plain log -1; timeout 3 cat $plain/.git' '[ "$status" = 124 ]' && return
	held inner-invalid
	mends
	local harm
	brief=1
	for harm in 'perl -MIO::Socket::UNIX -e "IO::Socket::UNIX->new(Local => q(.git), Listen => 1) or die"' ': >.git' 'mkdir .git' 'cp -a /tmp/good .git; chmod 000 .git' 'ln -s .git .git'; do
		attack "rm -rf .git; $harm"
		held inner-invalid
		mends
	done
}

Q2() {
	tries 'HEAD, config, packed-refs and refs that are folders, links to endless devices, or endless files'
	attack 'rm .git/config; ln -s /dev/zero .git/config'
	plainly 'ulimit -v 4000000; timeout 3 git -C $plain log -1' '[ "$status" != 0 ]' && return
	held inner-invalid
	mends
	in_turn 'rm .git/HEAD; mkdir .git/HEAD; git() { :; }; rm -rf .git/refs/heads/main' 'rm .git/HEAD; truncate -s 3G .git/HEAD; git() { :; }' 'truncate -s 3G .git/config; git() { :; }' \
		'truncate -s 3G .git/packed-refs; git() { :; }'
	# A device has no length: git takes it for empty.
	attack 'prepared; rm -f .git/packed-refs; ln -s /dev/urandom .git/packed-refs; published'
	lands
}

Q3() {
	tries 'main is a tree, a blob, a tag, missing, nonsense, huge'
	attack 'next=$(blob x); published'
	broken_git && return
	held inner-invalid
	mends
	in_turn 'next=$(git write-tree)' 'next=$(printf "object %s\ntype commit\ntag x\ntagger x <x@x> 1 +0000\n\nx\n" "$next" | git mktag)' 'next=1234567890123456789012345678901234567890' \
		'next=nonsense' 'next=$(head -c 100000 /dev/zero | tr "\0" a)'
}

Q4() {
	tries 'missing objects: a parent, a tree, a blob, all'
	attack 'prepared; rm -f "$(file_of "$next^{tree}")"; published'
	broken_git && return
	held inner-invalid
	mends
	in_turn 'rm -f "$(file_of :work)"' 'rm -f "$(file_of $next)"' 'rm -rf .git/objects/*' 'rm -rf .git/objects; : >.git/objects' 'chmod 000 .git/objects'
	attack 'prepared; next=$(git cat-file commit $next | sed "s/^parent .*/parent 1234567890123456789012345678901234567890/" | git hash-object -t commit -w --stdin); published'
	held inner-invalid 1234567890
	mends
}

Q5() {
	tries 'a folder of 1,000,001 files'
	attack 'b=$(blob); next=$(git commit-tree -m "$id" -p main "$(perl -e "printf qq(100644 blob %s\tf%07d\n), \$ARGV[0], \$_ for 1..1000001" "$b" | git mktree)"); published'
	plainly 'git fetch -q $plain main && ulimit -v 500000 && timeout 3 git read-tree FETCH_HEAD' '[ "$(git ls-tree FETCH_HEAD | wc -l)" = 1000001 ]' && return
	held inner-invalid 'airlock.limit.(entries|paths)'
	bounded
	mends
}

Q6() {
	# On a side branch, since the commits before a refused one land; few, since with the usual limit that would be a million files.
	tries '12,000 files in 120 folders with a limit of 5,000, of which each commit of a side branch adds a few'
	fresh 'git config airlock.limit.entries 5000' || return
	attack 'b=$(blob)
		folder() { perl -e "printf qq(100644 blob %s\tf%04d\n), \$ARGV[0], \$_ for 1..100" "$b" | git mktree; }
		t=$(folder); lines=; for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
			many=$(perl -e "printf qq(040000 tree %s\td%03d\n), \$ARGV[0], \$_ for 1..10" "$t" | git mktree)
			lines="$lines$(printf "040000 tree %s\te%02d" "$many" $i)
"; next=$(git commit-tree -m "$id" -p ${next:-main} "$(printf %s "$lines" | git mktree)"); done
		next=$(git commit-tree -m "$id" -p main -p $next "main^{tree}"); published'
	plainly 'git fetch -q $plain main' '[ "$(git ls-tree -r FETCH_HEAD^2 | wc -l)" = 12000 ]' && return
	held inner-invalid airlock.limit.entries
	bounded
	mends
}

# delta_bomb has the agent make a pack in which a blob of SIZE bytes is a few kilobytes of deltas, and commit it.
delta_bomb="$(cat <<'PERL'
use Digest::SHA qw(sha1 sha1_hex); use Compress::Zlib;
my ($size, $out) = @ARGV;
sub header { my ($type, $n) = @_; my $b = ($type << 4) | ($n & 15); $n >>= 4; my $s = ''; while ($n) { $s .= chr($b | 128); $b = $n & 127; $n >>= 7 } $s . chr $b }
sub number { my $n = shift; my $s = ''; do { my $b = $n & 127; $n >>= 7; $s .= chr($n ? $b | 128 : $b) } while $n; $s }
my $base = "\0" x 65536;
# Each delta is all of the one before, 200 times over.
my @objects = (header(3, length $base) . compress($base)); my $length = length $base; my @deltas;
my $sha = Digest::SHA->new(1); 
my $pack = ''; my $previous = 12; my $at = 12 + length $objects[0];
while ($length < $size) {
	my $times = int($size / $length); $times = 200 if $times > 200; $times = 2 if $times < 2;
	my $copy = ''; for (1..$times) { my $left = $length; my $from = 0; while ($left) { my $n = $left > 0xffffff ? 0xffffff : $left; my $op = 128; my $args = '';
		for my $i (0..3) { my $c = ($from >> 8 * $i) & 255; if ($c) { $op |= 1 << $i; $args .= chr $c } }
		for my $i (0..2) { my $c = ($n >> 8 * $i) & 255; if ($c) { $op |= 16 << $i; $args .= chr $c } }
		$copy .= chr($op) . $args; $from += $n; $left -= $n } }
	my $delta = number($length) . number($length * $times) . $copy;
	my $back = $at - $previous; my $offset = chr($back & 127); while ($back >>= 7) { $offset = chr(128 | (--$back & 127)) . $offset }
	my $entry = header(6, length $delta) . $offset . compress($delta);
	push @objects, $entry; $previous = $at; $at += length $entry; $length *= $times;
}
my $all = 'PACK' . pack('NN', 2, scalar @objects) . join('', @objects); $all .= sha1($all);
open my $f, '>', $out or die; print $f $all; print "$length\n";
PERL
)"

Q7() {
	tries 'a blob of 400 MB in a kilobyte of deltas, with airlock.limit.memory at 128 MB'
	if ! perl -MCompress::Zlib -MDigest::SHA -e 1 2>/dev/null; then untriable - 'there is no perl with zlib to make it with' && return; fi
	perl -e "$delta_bomb" 400000000 "$work/bomb.pack" >"$said" || surprised 'no bomb could be made'
	expected 'stored nowhere, with little memory'
	# Who can run git inside can make such a pack; it is handed in as what the agent wrote.
	if [ -n "$proving" ]; then
		cp "$work/bomb.pack" "$plain/bomb.pack"
		plainly 'cd $plain; ulimit -d 131072; git index-pack bomb.pack' '[ "$status" != 0 ]'
		return
	fi
	git config airlock.limit.memory 128m
	git airlock visit -- sh -c 'cat >.git/objects/pack/bomb.pack' <"$work/bomb.pack"
	# index-pack inside would take the memory itself: the index is made here, by hand of a smaller one.
	attack 'cd .git/objects/pack; (ulimit -v 8000000; timeout 60 git index-pack bomb.pack >$scratch/bomb 2>&1) || { cat $scratch/bomb; rm -f bomb.pack; echo unmade; exit 0; }
		mv bomb.pack pack-$(cat $scratch/bomb).pack; mv bomb.idx pack-$(cat $scratch/bomb).idx; cd /workspace
		becomes "$(git cat-file --batch-all-objects --batch-check | awk "\$3 > 60000 { printf \"100644 blob %s\\tbig%d\\n\", \$1, NR }" | git mktree)"'
	if grep -q -x unmade "$work/agent.out"; then untriable - "git inside cannot make it: $(head -n 1 "$work/agent.out")" && return; fi
	held inner-invalid airlock.limit.memory
	bounded
	mends
	git config --unset airlock.limit.memory
}

Q8() {
	tries 'a commit that changes 200,001 paths'
	attack 'b=$(blob); t=$(perl -e "printf qq(100644 blob %s\tf%06d\n), \$ARGV[0], \$_ for 1..200001" "$b" | git mktree); next=$(git commit-tree -m "$id" -p main "$t"); published'
	plainly 'git fetch -q $plain main' '[ "$(git ls-tree FETCH_HEAD | wc -l)" = 200001 ]' && return
	held inner-invalid airlock.limit.paths
	bounded
	mends
}

Q9() {
	tries 'a merge of 3,000 parents; 20,000 commits at once'
	attack 't=$(git rev-parse "main^{tree}"); perl -e "my (\$t, \$m) = @ARGV; for (1..3000) { print qq(commit refs/heads/p\nmark :\$_\ncommitter x <x\@x> \$_ +0000\ndata 2\np\n), qq(from \$m\n\n) }
			print qq(commit refs/heads/all\ncommitter x <x\@x> 1 +0000\ndata 4\nall\nfrom \$m\n), map { qq(merge :\$_\n) } 1..3000; print qq(\n)" "$t" "$(git rev-parse main)" | git fast-import --quiet --force
		next=$(git rev-parse all); git update-ref -d refs/heads/p; git update-ref -d refs/heads/all; published'
	plainly 'git fetch -q $plain main' '[ "$(git rev-list --parents -n 1 FETCH_HEAD | wc -w)" -gt 3000 ]' && return
	expected 'held or landed, in little memory'
	if await 20000 held_or_landed; then seen "${settled} after $(since "$begun_at") ms"; else surprised "neither: $(hold)"; fi
	user_looks
	bounded
	restored
	attack 'm=$(git rev-parse main); perl -e "my \$m = shift; for (1..20000) { print qq(commit refs/heads/line\nmark :\$_\ncommitter x <x\@x> \$_ +0000\ndata 2\nc\n), (\$_ == 1 ? qq(from \$m\n) : q()), qq(\n) }" "$m" | git fast-import --quiet --force
		next=$(git rev-parse line); git update-ref -d refs/heads/line; published'
	if await 60000 held_or_landed; then seen "${settled} after $(since "$begun_at") ms"; else surprised "neither: $(hold)"; fi
	bounded
}
held_or_landed() {
	settled=landed
	[ -n "$(git log -1 --format=%H main --)" ] && [ "$(field pending)" = 0 ] && [ -z "$(hold)" ] && [ "$(field inner_tip)" = "$next" ] && return
	settled=$(hold | cut -c1-120)
	[ -n "$settled" ]
}

Q10() {
	tries 'an index, an exclude file and attributes that are huge, FIFOs or nonsense'
	no_plain 'git would wait for them' && return
	attack 'prepared; rm .git/index; mkfifo .git/index; published'
	lands
	restored
	attack 'prepared; head -c 300000 /dev/urandom >.git/index; rm .gitignore; mkfifo .gitignore; published'
	lands
	restored
	# git that packs what a commit brings asks for attributes.
	attack 'prepared; mkfifo .gitattributes; published'
	held inner-invalid .gitattributes
	mends
	attack 'prepared; mkdir -p .git/info; rm -f .git/info/exclude .git/info/attributes; mkfifo .git/info/exclude .git/info/attributes; echo $next >.git/refs/heads/main'
	held inner-invalid '.git/info/(exclude|attributes)'
	mends
}

Q11() {
	tries 'objects next to a FIFO in every folder, and a loop of alternates'
	no_plain 'git does not open them' && return
	attack 'prepared; mkdir -p .git/objects/info; echo "$PWD/.git/objects" >.git/objects/info/alternates; published'
	lands
	attack 'prepared; find .git/objects -type d -exec sh -c "mkfifo \"\$1/fifo\"" sh {} \; ; published'
	lands
}

Q12() {
	tries 'other damage to .git: config with formats, work trees, bareness, hashes'
	attack 'prepared; git config core.repositoryFormatVersion 99; echo $next >.git/refs/heads/main'
	broken_git && return
	held inner-invalid
	mends
	brief=1
	local harm
	for harm in 'git config extensions.objectFormat sha256; git config core.repositoryFormatVersion 1' 'echo "[core" >>.git/config' 'printf "\0\0\0" >.git/config' 'printf "[a]\nb = \"" >>.git/config' 'git config core.compression 99'; do
		attack "prepared; git() { command git \"\$@\" || :; }; $harm; echo \$next >.git/refs/heads/main"
		held inner-invalid
		mends
	done
	attack 'prepared; git config core.bare true; git config core.worktree /nowhere; echo $next >.git/refs/heads/main; echo "tree $(git --git-dir=.git rev-parse $next^{tree})"'
	lands
}

Q13() {
	tries '10^16 empty folders in a kilobyte; paths of 4,000 bytes with a total of gigabytes'
	attack 't=$(git mktree </dev/null)
		for level in 1 2 3 4 5 6 7 8; do t=$(perl -e "printf qq(040000 tree %s\t%02d\n), \$ARGV[0], \$_ for 0..99" "$t" | git mktree); done; becomes "$t"'
	plainly 'git fetch -q $plain main; timeout 3 git ls-tree -r FETCH_HEAD' '[ "$status" = 124 ]' && return
	held inner-invalid airlock.limit.paths
	bounded
	mends
	attack 'b=$(blob); t=$(perl -e "printf qq(100644 blob %s\t%0250d\n), \$ARGV[0], \$_ for 1..10000" "$b" | git mktree)
		for level in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do t=$(printf "040000 tree %s\t%0250d\n" "$t" 7 | git mktree); done
		becomes "$(perl -e "printf qq(040000 tree %s\t%02d\n), \$ARGV[0], \$_ for 1..19" "$t" | git mktree)"'
	held inner-invalid airlock.limit.paths
	bounded
	mends
}

Q14() {
	tries 'a file of 1.5 GB in 1.5 MB; 300 files of 7.5 MB in 2 MB'
	attack 'truncate -s 1500M zeros; git -c core.bigFileThreshold=8m add zeros; rm zeros; git commit -q -m zeros; told'
	plainly 'ulimit -f 1000000; git fetch -q --no-auto-gc $plain main; git merge -q --allow-unrelated-histories FETCH_HEAD' '[ "$status" != 0 ]' && return
	held inner-invalid airlock.limit.blob
	bounded
	mends
	attack 'for n in $(seq 300); do printf "100644 blob %s\t%s\n" "$({ echo "$n"; head -c 7500000 /dev/zero; } | git hash-object -w --stdin)" "$n"; done >$scratch/list
		becomes "$(git mktree <$scratch/list)"'
	held inner-invalid airlock.limit.pack
	bounded
	mends
}

Q15() {
	tries '300 commits with headers and messages of half a megabyte each'
	attack 'cat >$scratch/many <<"PERL"
my ($tip, $tree, $n, $file) = @ARGV;
for my $i (1..$n) {
	open my $f, ">", $file or die;
	print $f "tree $tree\nparent $tip\n", "author a", "j" x 240000, " <a\@b> $i +0000\ncommitter a <a\@b> $i +0000\nx ", "j" x 200000, "\n\nm$i", "m" x 500000;
	close $f;
	chomp($tip = `git hash-object -t commit -w --literally $file`);
}
print "$tip\n";
PERL
		t=$(git rev-parse "main^{tree}"); next=$(perl $scratch/many "$(git rev-parse main)" "$t" 300 $scratch/commit); test -n "$next"; published'
	plainly 'git fetch -q $plain main; git log FETCH_HEAD' '[ "$(stat -c %s "$said")" -gt 200000000 ]' && return
	expected 'held or landed, in little memory'
	if await 60000 held_or_landed; then seen "${settled} after $(since "$begun_at") ms"; else surprised "neither: $(hold)"; fi
	bounded
}
