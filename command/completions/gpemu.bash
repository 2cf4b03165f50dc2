# SPDX-License-Identifier: MIT
# Completion for bash of gpemu and its programs: commands and options from
# --help, names of plug-ins and profiles from --list.

# _gpemu_words COMMAND...: the commands and options that its --help lists;
# options with an argument end in '='. Descriptions are indented further.
_gpemu_words()
{
	"$@" --help 2>/dev/null | sed -nE \
		-e 's/^ {2,6}(-., )?(--[a-z][a-z0-9-]*)(=?).*/\2\3/p' \
		-e 's/^  ([a-z][a-z0-9-]*) .*/\1/p'
}

# _gpemu_values OPTION COMMAND...: what may follow the option
_gpemu_values()
{
	local kind=$1

	shift
	case $kind in
	--list)
		"$@" --list '' 2>&1 | sed -n 's/.*(known: \(.*\))$/\1/p'
		return
		;;
	--loader) kind=engine ;;
	--cache-policy) kind=policy ;;
	--prep-profile) kind=prep_profile ;;
	--*) kind=${kind#--} ;;
	*) return ;;
	esac
	"$@" --list "$kind" 2>/dev/null | sed -n 's/^\([^ ]*\).*/\1/p'
}

_gpemu()
{
	local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
	local -a command=("${COMP_WORDS[0]}")
	local i=1

	# = is a word of its own
	if [ "$cur" = = ]; then
		cur=
	elif [ "$option" = = ]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	# the commands in front of the options
	while ((i < COMP_CWORD && i < 3)); do
		[[ ${COMP_WORDS[i]} == [a-z]* ]] || break
		_gpemu_words "${command[@]}" | grep -qxF "${COMP_WORDS[i]}" ||
			break
		command+=("${COMP_WORDS[i++]}")
	done
	COMPREPLY=()
	[[ $option != -[a-zA-Z] ]] ||
		option=$("${command[@]}" --help 2>/dev/null |
			sed -nE "s/^ +$option, (--[a-z0-9-]+)=.*/\1/p")
	if _gpemu_words "${command[@]}" | grep -qxF -e "$option="; then
		COMPREPLY=($(compgen -W \
			"$(_gpemu_values "$option" "${command[@]}")" -- "$cur"))
	elif [[ $cur == -* || $COMP_CWORD -eq $i ]]; then
		COMPREPLY=($(compgen -W \
			"$(_gpemu_words "${command[@]}")" -- "$cur"))
		[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
	fi
	return 0
}

complete -o default -F _gpemu gpemu gpemu-cachesim gpemu-data gpemu-exec gpemu-fs \
	gpemu-gpud gpemu-k8s-plugin gpemu-part gpemu-prepd gpemu-profile \
	gpemu-record gpemu-run gpemu-s3 gpemu-sched gpemu-slurm gpemu-smi gpemu-train
